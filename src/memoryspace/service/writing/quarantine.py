"""Review of quarantined memories: listing and releasing them."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace as change

from ...record import Record, Scope, Where
from ..values.envelope import sources_of
from ..values.memory import QUARANTINED, MemoryItem
from .erasing import Eraser, is_source, own_sources
from .repository import MemoryRepository


class Review:
    """Lists and releases the quarantined memories of a store."""

    def __init__(self, repository: MemoryRepository, eraser: Eraser) -> None:
        self._repository = repository
        self._eraser = eraser

    async def held_back(self, scope: Scope) -> list[MemoryItem]:
        """Return the quarantined memories, oldest first."""
        return await self._repository.select(scope, Where(marks=frozenset({QUARANTINED})))

    async def release(self, scope: Scope, memory_ids: Iterable[str]) -> list[str]:
        """Release memories, and what was derived from them and no other quarantined memory."""
        released: list[str] = []
        for memory_id in memory_ids:
            released += await self._release(scope, memory_id)
            for record in await self._eraser.derived_from(scope, {memory_id}):
                if QUARANTINED in record.marks and await self._may_follow(scope.user, record):
                    released += await self._release(Scope(scope.user, record.session), record.id)
        return released

    async def _release(self, scope: Scope, memory_id: str) -> list[str]:
        held_back = await self._repository.find(scope, memory_id)
        released = await self._repository.edit(scope, memory_id, _released)
        return [memory_id] if held_back is not None and released.seq != held_back.seq else []

    async def _may_follow(self, user: str, record: Record) -> bool:
        where = Where(ids=frozenset(sources_of(record)), marks=frozenset({QUARANTINED}))
        held_back = await self._repository.store.select(Scope(user), where)
        own = own_sources(record)
        return not any(is_source(each, record.session, own) for each in held_back)


def _released(memory: MemoryItem) -> MemoryItem | None:
    if not memory.is_quarantined:
        return None
    return change(memory, marks=memory.marks - {QUARANTINED})
