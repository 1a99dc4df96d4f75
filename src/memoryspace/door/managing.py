"""The verbs that look after a memory: figures, users, and the past of a memory space."""

from __future__ import annotations

import asyncio
from datetime import datetime
from os import PathLike
from pathlib import Path
from typing import Any, Self

from ..embedding import best_embedder
from ..errors import InvalidInput, NotOffered
from ..kernel import fork, restore
from ..record import Record
from ..service.reading.filters import moment as time_of
from ..service.settings import ServiceSettings
from ..service.values.envelope import memory_of
from ..service.values.kinds import NO_MEMORIES, SUPERSEDED
from ..service.values.memory import QUARANTINED, RAW, MemoryItem
from ..store.space import PastStore, RecordChange, SpaceStore, changes_between, store_at
from ..store.users import UserPage
from ..version import VERSION
from .base import Opening
from .messages import Time
from .places import folder_to_make
from .results import Collected, Diff, Garbage, MemoryChange, Moment, Stats, What

_FIGURES = ("objects", "heap_capacity", "heap_used", "fragmentation", "cold_items", "gc_cycles")


class Managing(Opening):
    """The part of the door that looks after the memory as a whole."""

    async def stats(self, *, user: str | None = None) -> Stats:
        """Return what the memory stands on and, of a user, how much is remembered."""
        service = await self._opened()
        user = self.config.user if user is None else user
        about: dict[str, Any] = {}
        if user is not None:
            status = await service.status(user)
            held_back = {"quarantined": True, "kind": RAW, "marks": QUARANTINED}
            about = {
                "user": user,
                "memories": await service.count(user, {"kind": RAW}),
                "facts": len(await service.facts(user, top_k=1000)),
                "quarantined": await service.count(user, held_back),
                "usage": await service.usage(user),
                "status": status,
            }
        return Stats(
            version=VERSION,
            address=self.address,
            backend=type(self._store).__name__,
            is_durable=self._store.is_durable,
            embedder=_embedder_name(service.settings),
            search=self.config.search,
            space=await self._figures(),
            **about,
        )

    async def users(self, *, cursor: str | None = None, limit: int = 100) -> UserPage:
        """Return one page of the users who have memories.

        Pass each page's ``cursor`` to the next call until it is ``None``.
        """
        service = await self._opened()
        return await service.users(cursor=cursor, limit=limit)

    async def health(self) -> bool:
        """Return whether the store answers."""
        service = await self._opened()
        return await service.health()

    # -- the past of a memory space ----------------------------------------------------------------

    async def snapshot(self) -> Moment:
        """Write a checkpoint and return this moment, to read or restore later.

        The past is kept for ``Config.keep_days``.

        Raises:
            NotOffered: The memory is not in a folder.
        """
        store = await self._space("snapshot")
        lsn = await asyncio.to_thread(store.space.checkpoint)
        return Moment(lsn, self._store.clock())

    async def at(self, moment: Moment | int | Time) -> Self:
        """Return the memory as it was at a moment, to be searched and read, not changed.

        Args:
            moment: A snapshot, the number of a change, or a time: seconds, ISO text, ``datetime``.

        Raises:
            NotOffered: The memory is not in a folder.
            InvalidInput: The past is not kept that far back.

        Example::

            with memory.at("2026-11-01") as past:
                print(past.facts(user="alice"))
        """
        store = await self._space("at")
        past = await store_at(store, **_named(store, moment))
        return self._on(past)

    async def diff(
        self, before: Moment | int | Time, after: Moment | int | Time | None = None
    ) -> Diff:
        """Return which memories were added, removed or changed between two moments.

        Args:
            before: The earlier moment.
            after: The later one; now by default.
        """
        store = await self._space("diff")
        first = await _lsn_of(store, before)
        last = None if after is None else await _lsn_of(store, after)
        changes = await changes_between(store, first, last)
        return Diff(_change(each) for each in changes if _kind_of(each) not in NO_MEMORIES)

    async def restore(self, moment: Moment | int | Time) -> Moment:
        """Make the memory what it was at a moment; return the moment before, to go back again.

        ``diff(moment)`` shows beforehand what would be lost. Memories that were deleted since come
        back. Users who were erased since do not: they are erased again.
        """
        store = await self._space("restore")
        await self._recalls.close()
        now = Moment(store.space.last_lsn, self._store.clock())
        named = _named(store, moment)
        async with await store_at(store, **named) as past:
            then = past.past.time
        await asyncio.to_thread(lambda: restore(store.space, **named))
        if store.erasures is not None and store.erasures.is_begun:
            from ..care import replay_erasures  # slow to import, and seldom needed

            await replay_erasures(store, [store.erasures], since=then, only_users=True)
        return now

    async def fork(
        self, folder: str | PathLike[str], moment: Moment | int | Time | None = None
    ) -> Path:
        """Copy the memory, as it is or as it was at a moment, into a new folder; return its path.

        Raises:
            InvalidInput: The folder is not empty, or the past is not kept that far back.
        """
        store = await self._space("fork")
        named, target = {} if moment is None else _named(store, moment), folder_to_make(folder)
        return await asyncio.to_thread(lambda: fork(store.space, target, **named))

    async def gc(self, *, explain: bool = False) -> Collected:
        """Collect garbage now, or only explain what would be freed and why."""
        store = await self._space("gc")
        if explain:
            condemned = await asyncio.to_thread(store.space.explain_gc)
            garbage = tuple(Garbage(*each) for each in condemned)
            return Collected(garbage=garbage)
        event = await asyncio.to_thread(store.space.run_gc)
        return Collected(
            event.freed, event.freed_bytes, event.reasons, event.pause_duration, event.duration
        )

    async def _space(self, verb: str) -> SpaceStore:
        store = self._space_store(verb)
        if isinstance(store, PastStore) and verb not in ("gc", "stats"):
            raise NotOffered(
                f"{verb}() is not offered on a view of the past; use the memory itself"
            )
        await self._opened()
        return store

    async def _figures(self) -> dict[str, float] | None:
        if not isinstance(self._store, SpaceStore):
            return None
        stats = await asyncio.to_thread(self._store.space.stats)
        return {name: stats[name] for name in _FIGURES if name in stats}

    def _on(self, past: PastStore) -> Self:
        raise NotImplementedError


def _embedder_name(settings: ServiceSettings) -> str | None:
    embedder = best_embedder() if settings.embedder == "best" else settings.embedder
    return None if embedder is None else embedder.name


def _named(store: SpaceStore, moment: Moment | int | Time) -> dict[str, Any]:
    """Return a moment as the kernel names it: by the number of a change, or by a time."""
    if isinstance(moment, Moment):
        moment = moment.lsn
    if isinstance(moment, int) and not isinstance(moment, bool):
        if moment > store.space.last_lsn:
            raise InvalidInput(
                f"there is no change {moment} yet, the newest is {store.space.last_lsn}; "
                "a time in seconds is a float"
            )
        return {"lsn": moment}
    if isinstance(moment, datetime | str | float):
        return {"time": time_of("moment", moment)}
    raise TypeError(
        f"a moment is a snapshot, the number of a change or a time, got {type(moment).__name__}"
    )


async def _lsn_of(store: SpaceStore, moment: Moment | int | Time) -> int:
    named = _named(store, moment)
    if "lsn" in named:
        return int(named["lsn"])
    async with await store_at(store, **named) as past:
        return past.past.lsn


def _kind_of(each: RecordChange) -> str:
    record = each.before if each.after is None else each.after
    assert record is not None  # a change has at least one side
    return record.kind


def _change(each: RecordChange) -> MemoryChange:
    before, after = _memory(each.user, each.before), _memory(each.user, each.after)
    return MemoryChange(
        each.user,
        each.session,
        each.id,
        _kind_of(each),
        None if before is None else before.text,
        None if after is None else after.text,
        _what(before, after),
    )


def _memory(user: str, record: Record | None) -> MemoryItem | None:
    return None if record is None else memory_of(user, record)


def _what(before: MemoryItem | None, after: MemoryItem | None) -> What:
    if before is None:
        return "added"
    if after is None:
        return "removed"
    held, holds = SUPERSEDED not in before.marks, SUPERSEDED not in after.marks
    if held == holds:
        return "changed"
    return "holds again" if holds else "ended"
