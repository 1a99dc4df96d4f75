"""``IndexSaving``: when a user's index is saved, opened again, and removed.

An index is opened before its first use, and saved in the background after a search that left enough
unsaved, and when the service stops. An index is saved right after the store was read, and the store
is asked once more behind it: if another process deleted something meanwhile, the save is removed.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable

from ...errors import CorruptData, MemorySpaceError
from ...record import Scope, Where
from ...store import Store
from ...store.contract import session_in
from .contract import EntryOf
from .saved import FEWEST, Opening, SavedIndexes
from .slots import IndexSlot
from .user_index import UserIndex

logger = logging.getLogger(__name__)

REST_SECONDS = 20.0  # between two saves of one user
SHARE = 10  # an index is saved again when one in so many entries is new or gone

_REMEMBERED = 10_000  # users whose last save is known
_COMPARED = 3  # entries that are read to see whether the store is the one of the index

IsCurrent = Callable[[str, IndexSlot], bool]


class IndexSaving:
    """Saves the indexes of a searcher and opens them again."""

    def __init__(
        self, saved: SavedIndexes, store: Store, entry_of: EntryOf, opening: Opening
    ) -> None:
        self._saved, self._store, self._opening = saved, store, opening
        self._entry_of = entry_of
        self._tasks: dict[str, asyncio.Task[None]] = {}  # user → the save that runs
        self._saved_at: dict[str, float] = {}
        self._sweeping: asyncio.Task[None] | None = None
        self._is_swept = False

    async def open(self, user: str, slot: IndexSlot, make: Callable[[], UserIndex]) -> None:
        """Put the saved index of a user into a slot, if there is one that can be used."""
        self._start_sweep()
        index, began = make(), time.perf_counter()
        try:
            kept = await asyncio.to_thread(self._saved.open, user, index, self._opening)
            if kept is None:
                return
            state = self._store.load_state(kept, index.listed)
            await self._compare(user, index)
        except CorruptData as error:
            self._store.events.emit("saved_index_refused", user=user, error=error)
            logger.info("a saved index is not used, and built anew: %s", error)
            await self.forget(user)
            return
        index.state = state
        index.unsaved = index.lost = 0
        if slot.index.state is None:
            slot.take(index)
            seconds = time.perf_counter() - began
            self._store.events.emit(
                "saved_index_opened", user=user, entries=len(index), seconds=seconds
            )

    async def changed(self, user: str, slot: IndexSlot, is_current: IsCurrent) -> None:
        """Remove the save of an index that lost entries; save one with enough that is unsaved."""
        if slot.index.lost:
            slot.index.lost, slot.index.unsaved = 0, slot.index.unsaved + len(slot.index)
            await self.forget(user)
        if slot.index.unsaved * SHARE < max(FEWEST, len(slot.index)) or not self._may(user, slot):
            return
        if time.monotonic() - self._saved_at.get(user, -REST_SECONDS) < REST_SECONDS:
            return
        if len(self._saved_at) > _REMEMBERED:
            self._saved_at.clear()
        self._saved_at[user] = time.monotonic()
        self._tasks[user] = asyncio.get_running_loop().create_task(
            self._save(user, slot, is_current)
        )
        self._tasks[user].add_done_callback(lambda _: self._tasks.pop(user, None))

    async def stop(self, slots: Iterable[tuple[str, IndexSlot]], is_current: IsCurrent) -> None:
        """Save what is unsaved."""
        if self._sweeping is not None:
            self._sweeping.cancel()
        for user, slot in slots:
            await self._finished(user)
            if slot.index.unsaved and self._may(user, slot):
                await self._save(user, slot, is_current)

    async def forget(self, user: str) -> None:
        """Remove a user's files, after a save that runs."""
        await self._finished(user)
        await asyncio.to_thread(self._saved.forget, user)

    async def holds(self, user: str) -> bool:
        """Return whether there are files of a user."""
        return await asyncio.to_thread(self._saved.holds, user)

    async def remove(self) -> None:
        """Remove all files."""
        for user in list(self._tasks):
            await self._finished(user)
        await asyncio.to_thread(self._saved.remove)

    async def _finished(self, user: str) -> None:
        task = self._tasks.get(user)
        if task is not None and task.get_loop() is asyncio.get_running_loop():
            await asyncio.wait([task])

    def _may(self, user: str, slot: IndexSlot) -> bool:
        index = slot.index
        is_own = index.embedder is None or index.embedder is self._opening.embedder
        return len(index) >= FEWEST and user not in self._tasks and is_own

    async def _save(self, user: str, slot: IndexSlot, is_current: IsCurrent) -> None:
        try:
            await self._save_now(user, slot, is_current)
        except (MemorySpaceError, OSError, ValueError, TypeError) as error:
            logger.warning("an index was not saved and will be built anew: %r", error)
            self._store.events.emit("index_not_saved", user=user, error=error)

    async def _save_now(self, user: str, slot: IndexSlot, is_current: IsCurrent) -> None:
        state = slot.index.state
        kept = self._store.dump_state(state)
        if kept is None:
            return
        fresh = await self._store.changes(user, state)
        if fresh.kept or fresh.gone or not is_current(user, slot):
            return  # the next search learns of it, and saves

        def save(index: UserIndex) -> int | None:
            return self._saved.save(user, index, kept) if index.state is state else None

        began = time.perf_counter()
        size = await asyncio.to_thread(slot.locked, save)
        if size is None:
            return
        again = await self._store.changes(user, state)
        if again.kept or again.gone or not is_current(user, slot):
            await asyncio.to_thread(self._saved.forget, user)
            return
        seconds = time.perf_counter() - began
        self._store.events.emit("index_saved", user=user, bytes=size, seconds=seconds)

    async def _compare(self, user: str, index: UserIndex) -> None:
        """Raise ``CorruptData`` unless the store holds the newest entries as they are here."""
        newest = index.newest(_COMPARED)
        where = Where(ids=frozenset(place.id for place in newest))
        there = {
            (session_in(each), each.id, each.seq): each
            for each in await self._store.select(Scope(user), where)
        }
        for place, entry in newest.items():
            record = there.get((place.session, place.id, place.seq))
            known = None if record is None else self._entry_of(record)
            if known is None or known.text != entry.text:
                raise CorruptData(f"the index saved for {user!r} is of other records")

    def _start_sweep(self) -> None:
        if not self._is_swept:
            self._is_swept = True
            self._sweeping = asyncio.get_running_loop().create_task(self._sweep())

    async def _sweep(self) -> None:
        """Remove the files of users who have nothing in the store any more."""
        try:
            for user in await asyncio.to_thread(lambda: list(self._saved.users())):
                if not await self._store.count(Scope(user)):
                    await asyncio.to_thread(self._saved.forget, user)
        except (MemorySpaceError, OSError) as error:
            logger.info("saved indexes are looked through at the next start: %s", error)
