"""``Mem0Eraser``: deletes memories from mem0 and reports exactly what was deleted.

mem0's own ``delete_all`` is not reliable: 1.x stops after a hundred memories, 2.x logs failures and
reports success. What it leaves is deleted one by one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ...errors import StoreError
from ...store.remains import UNKNOWN
from ..values.memory import RAW, MemoryItem
from ..values.results import Deleted, Erasure
from .calls import Ids, Mem0Calls, Mem0Item
from .reading import Mem0Reader
from .remains import SideDatabase
from .shapes import quarantine_owner


class Mem0Eraser:
    """Deletes memories through a client, and from the database beside its vectors."""

    def __init__(self, calls: Mem0Calls, reading: Mem0Reader) -> None:
        self._calls = calls
        self._reading = reading
        self._side_database = SideDatabase(calls.client)

    async def all_of(self, user: str, session: str | None) -> Deleted:
        """Delete everything of a user, or of one of the user's sessions."""
        own = {} if session is None else {"run_id": session}
        gone: list[Mem0Item] = []
        for owner in (user, quarantine_owner(user)):
            gone += await self._all_in({"user_id": owner, **own})
        memories = [self._reading.as_memory(user, each) for each in gone]
        return await self._deleted({"user_id": user, **own}, memories, messages=True)

    async def _all_in(self, ids: Ids) -> list[Mem0Item]:
        before = await self._calls.everything(ids, expired=True)
        left = before
        if before and self._calls.style.hosted:  # one request instead of many
            await self._calls.delete_all(ids)
            left = await self._calls.everything(ids, expired=True)
        await self._one_by_one([str(each["id"]) for each in left])
        return before

    async def some(self, user: str, memory_ids: Sequence[str], session: str | None) -> Deleted:
        """Delete memories by id; those of other users are ignored."""
        wanted = dict.fromkeys(memory_ids)
        found = [await self._reading.find(user, each, session) for each in wanted]
        memories = [each for each in found if each is not None]
        await self._one_by_one([each.id for each in memories])
        return await self._deleted({"user_id": user}, memories, messages=False)

    async def left_of(self, user: str) -> Erasure:
        """Count what is left of a user: memories, and last messages beside them."""
        memories = 0
        for owner in (user, quarantine_owner(user)):
            memories += len(await self._calls.everything({"user_id": owner}, expired=True))
        messages = await asyncio.to_thread(self._side_database.messages, {"user_id": user})
        found = {RAW: memories, "last message": messages}
        return Erasure(user, found, 0, remains=(UNKNOWN,))

    async def _one_by_one(self, memory_ids: Sequence[str]) -> None:
        for memory_id in memory_ids:
            try:
                await self._calls.delete(memory_id)
            except StoreError:
                if await self._calls.get(memory_id) is not None:  # else it was deleted meanwhile
                    raise

    async def _deleted(self, ids: Ids, gone: Sequence[MemoryItem], *, messages: bool) -> Deleted:
        forget, memory_ids = self._side_database.forget, [each.id for each in gone]
        versions = await asyncio.to_thread(forget, ids, memory_ids, messages=messages)
        return Deleted(
            raw=tuple(each.id for each in gone if each.kind == RAW),
            derived=tuple(each.id for each in gone if each.kind != RAW),
            versions=versions,
        )
