"""``SpaceStore``: records in a memory space. Embedded and durable: no server, one folder.

A record is an object of the space: its user is the tenant, its marks are the tags, its seq is the
stamp of the change that stored it. What a choice needs to know of every record stays in RAM; its
value is decoded when it is selected, from the heap or from the cold tier.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from ...collector import collector_at_rest
from ...errors import CorruptData, InvalidInput, OutOfSpace
from ...events import EventStream
from ...kernel import (
    QUICK_OBJECTS,
    Desk,
    Durability,
    MemoryManager,
    NewObject,
    ObjectHandles,
    Placed,
    Runtime,
    TieredMemoryManager,
)
from ...record import EVERYTHING, Record, Scope, Where, as_marks
from ..contract import Changes, Clock, Store, admit, session_of
from ..erasures import FILE as LEDGER
from ..erasures import ErasureLedger
from ..remains import Remainder
from ..sessions import ListedState, News
from ..users import USERS_AT_ONCE, Usage, UserPage
from ..vectors import Kept, Place, check_space, check_vectors
from .index import SpaceIndex
from .objects import RecordEntry, object_of, record_of
from .vectors import vector_object, vectors_in

HOT_CAPACITY = 64 << 20

T = TypeVar("T")

_NOTHING = Where(ids=frozenset())
_SOON_DECODED = 1 << 19  # bytes

_IN_FILES = Remainder(
    "the journal, older checkpoints and unused pages of the cold tier in the folder",
    "scrub() rewrites them, or they are overwritten in the course of time",
)

_Row: TypeAlias = tuple[
    RecordEntry, bytes, tuple[float, bool]
]  # with importance, and if it is pinned


class SpaceStore(Store):
    """Records in a folder, or in a ``manager`` of your own, which stays yours to close.

    ``hot_capacity`` bounds the RAM for values; the rest stands in the cold tier. Safe to share
    between threads and event loops. One process owns the folder: in it, share one store. What
    happens in the space itself is told to the store's ``events`` as well. An event loop is not held
    up: what waits for the disk, or takes long, is done in a thread, in the order of the calls.
    """

    def __init__(
        self,
        folder: str | PathLike[str] | None = None,
        *,
        manager: MemoryManager | None = None,
        hot_capacity: int = HOT_CAPACITY,
        durability: Durability | None = None,
        clock: Clock = time.time,
        events: EventStream | None = None,
    ) -> None:
        if (folder is None) == (manager is None):
            raise InvalidInput("a SpaceStore needs a folder, or a manager that was opened already")
        if manager is not None and events is not None and events is not manager.events:
            raise InvalidInput("the manager has events of its own: give it these when opening it")
        super().__init__(clock=clock, events=events if manager is None else manager.events)
        self._folder = folder
        self._manager = manager
        self._hot_capacity = hot_capacity
        self._durability = durability
        if folder is not None:
            self.erasures = ErasureLedger(Path(folder) / LEDGER, is_synced=bool(self.is_durable))
        self._opening = threading.Lock()
        self._desk = Desk("memoryspace-store")
        self._index = SpaceIndex(clock, self.report_corrupt)
        if manager is not None:
            self._index.follow(ObjectHandles(manager))

    @property
    def folder(self) -> str | PathLike[str] | None:
        """The folder; ``None`` on a manager that was passed in."""
        return self._folder

    @property
    def space(self) -> MemoryManager:
        """The space behind the store, opened on first use and again after ``close``."""
        if self._manager is None:
            with self._opening:
                if self._manager is None:
                    self._manager = self._open()
        return self._manager

    def _open(self) -> MemoryManager:
        assert self._folder is not None  # checked when made
        manager = TieredMemoryManager(
            self._hot_capacity,
            folder=self._folder,
            durability=self._durability,
            retriever=None,
            runtime=Runtime(clock=self.clock, events=self.events),
        )
        try:
            self._index.follow(ObjectHandles(manager))
        except BaseException:
            manager.close()
            raise
        return manager

    @property
    def is_durable(self) -> bool | None:
        """If the journal is synced before a write is acknowledged; a manager's own is its own."""
        if self._folder is None:
            return None
        durability = Durability() if self._durability is None else self._durability
        return durability.syncs_always

    async def append(self, scope: Scope, records: Sequence[Record]) -> list[str]:
        return await self.replace(scope, _NOTHING, records)

    async def select(self, scope: Scope, where: Where = EVERYTHING) -> list[Record]:
        def work(space: ObjectHandles) -> list[_Row]:
            return self._rows(space, scope, self._chosen(space, scope, where))

        return await self._read(scope, await self._do(work))

    async def replace(
        self, scope: Scope, where: Where, records: Sequence[Record], *, if_found: bool = False
    ) -> list[str]:
        name = session_of(scope)

        def work(space: ObjectHandles) -> list[str]:
            new = [(record, object_of(scope.user, name, record)) for record in admit(records)]
            removed = [] if where is _NOTHING else self._chosen(space, scope, where)
            is_late = if_found and not removed
            return [] if is_late else self._replace(space, scope, removed, name, new)

        def sized(space: ObjectHandles) -> list[str]:
            space.expect(len(records), sum(len(record.text) for record in records))
            if len(records) <= QUICK_OBJECTS:
                return work(space)
            with collector_at_rest():  # it would scan all records, and stop every thread meanwhile
                return work(space)

        return await self._change(sized)

    async def mark(
        self, scope: Scope, where: Where, *, add: Collection[str] = (), remove: Collection[str] = ()
    ) -> int:
        put_on, take_off = as_marks(frozenset(add)), as_marks(frozenset(remove))

        def work(space: ObjectHandles) -> int:
            chosen = self._chosen(space, scope, where)
            pairs = [(entry, (entry.marks - take_off) | put_on) for entry in chosen]
            pairs = [(entry, marks) for entry, marks in pairs if marks != entry.marks]
            if pairs:
                space.retag({entry.handle: marks for entry, marks in pairs})
            for entry, marks in pairs:
                self._index.remark(entry, marks)
            return len(pairs)

        return await self._change(work)

    async def delete(self, scope: Scope, where: Where = EVERYTHING) -> list[str]:
        def work(space: ObjectHandles) -> list[str]:
            chosen = self._chosen(space, scope, where)
            if chosen:
                space.free(self._index.handles(chosen), "deleted")
            return [entry.id for entry in chosen]

        return await self._change(work)

    async def count(self, scope: Scope, where: Where = EVERYTHING) -> int:
        def work(space: ObjectHandles) -> int:
            if not where.is_only_kind:
                space.expect(self._index.sessions.size(scope, where))
            return self._index.sessions.count(scope, where, self.clock())

        return await self._do(work)

    async def sessions(self, user: str) -> list[str]:
        return await self._do(lambda _: self._index.sessions.names(user, self.clock()))

    async def users(self, *, cursor: str | None = None, limit: int = USERS_AT_ONCE) -> UserPage:
        return await self._do(lambda _: self._index.sessions.users(cursor, limit, self.clock()))

    async def usage(self, user: str) -> Usage:
        """Return what a user has; sizes are known without reading anything."""

        def work(space: ObjectHandles) -> Usage:
            space.expect(self._index.sessions.size(Scope(user), EVERYTHING))
            entries = list(self._index.sessions.entries(user, self.clock()))
            size = sum(space.size(entry.handle) for entry in entries)
            return Usage(len(entries), len({entry.session for entry in entries}), size)

        return await self._do(work)

    async def changes(self, user: str, state: Any = None) -> Changes:
        scope = Scope(user)

        def work(space: ObjectHandles) -> tuple[News[RecordEntry], list[_Row]]:
            space.expect(self._index.sessions.size_since(user, state))
            news = self._index.sessions.since(user, state, self.clock())
            return news, self._rows(space, scope, news.entries)

        news, rows = await self._do(work)
        return Changes(news.state, await self._read(scope, rows), news.kept, news.gone)

    def dump_state(self, state: Any) -> Any:
        """Return something if there is a folder: a state of another process is a list of seqs."""
        return None if self._folder is None else True

    def load_state(self, kept: Any, listed: Mapping[str, Mapping[str, int]]) -> Any:
        return ListedState(listed)

    async def vectors(self, user: str, space: str, places: Collection[Place]) -> dict[int, bytes]:
        check_space(user, space)

        def work(manager: ObjectHandles) -> dict[int, bytes]:
            manager.expect(len(places))
            found: dict[int, int] = {}
            for entry in self._index.standing(user, places):
                handle = self._index.vectors.find(entry.handle, space)
                if handle is not None:
                    found[handle] = entry.seq
            return {found[handle]: vector for handle, vector in vectors_in(manager, found)}

        return await self._do(work)

    async def put_vectors(self, user: str, space: str, vectors: Mapping[Place, bytes]) -> int:
        check_vectors(user, space, vectors)

        def work(manager: ObjectHandles) -> int:
            manager.expect(len(vectors))
            standing = self._index.standing(user, vectors)
            self._put_vectors(manager, space, standing, vectors)
            return len(standing)

        return await self._change(work)

    async def vector_spaces(self, user: str) -> dict[str, Kept]:
        def work(manager: ObjectHandles) -> dict[str, Kept]:
            found = dict[str, Kept]()
            for entry in self._chosen(manager, Scope(user), EVERYTHING):
                spaces = self._index.vectors.spaces(entry.handle)
                by_handle = {handle: space for space, handle in spaces.items()}
                for handle, vector in vectors_in(manager, by_handle):
                    had = found.get(by_handle[handle], Kept(0, 0))
                    found[by_handle[handle]] = Kept(had.count + 1, had.size + len(vector))
            return found

        return await self._do(work)

    async def drop_vectors(self, user: str, space: str) -> int:
        check_space(user, space)

        def work(manager: ObjectHandles) -> int:
            entries = self._chosen(manager, Scope(user), EVERYTHING)
            held = [self._index.vectors.find(entry.handle, space) for entry in entries]
            handles = [handle for handle in held if handle is not None]
            if handles:
                manager.free(handles, "dropped")
            return len(handles)

        return await self._change(work)

    async def scrub(self) -> None:
        """Rewrite the files so that nothing deleted before this call is left in any of them.

        It runs in a thread of its own; records can be read and written meanwhile.
        """
        oldest = await asyncio.to_thread(lambda: self.space.scrub())
        if oldest >= self._index.freed_at:
            self._index.freed_at = -1

    async def records_in(self, objects: Collection[str]) -> list[tuple[str, Record]]:
        """Return the records among some objects of the space, named by id, each with its user."""

        def work(space: ObjectHandles) -> dict[str, list[_Row]]:
            space.expect(len(objects))
            by_user: dict[str, list[RecordEntry]] = {}
            for entry in self._index.in_objects(frozenset(objects), space.id):
                by_user.setdefault(entry.user, []).append(entry)
            return {user: self._rows(space, Scope(user), some) for user, some in by_user.items()}

        found = []
        for user, rows in (await self._do(work)).items():
            found += [(user, record) for record in await self._read(Scope(user), rows)]
        return found

    async def remains(self) -> tuple[Remainder, ...]:
        """Tell whether anything was freed, as far as is known, since the files were rewritten."""

        def work(space: ObjectHandles) -> tuple[Remainder, ...]:
            return () if not space.has_files or self._index.freed_at < 0 else (_IN_FILES,)

        return await self._do(work)

    async def close(self) -> None:
        """Close the space if it was opened here; the next use opens it again."""
        if self._folder is not None and (self._manager is not None or self._desk.is_busy):
            await self._desk.aside(self._close)
        self._desk.rest()

    def _close(self) -> None:
        with self._opening:  # whoever comes now opens it when it is closed
            manager, self._manager = self._manager, None
            if manager is not None:
                manager.close()
                self._index.clear()

    # -- the doors ---------------------------------------------------------------------------------

    async def _do(self, work: Callable[[ObjectHandles], T]) -> T:
        """Read something under the lock: at once, or in a thread if it takes long."""
        return await self._desk.do(
            self._manager, self._opened, lambda manager: work(ObjectHandles(manager))
        )

    async def _change(self, work: Callable[[ObjectHandles], T]) -> T:
        """Change something under the lock, at once or in a thread; return when it is safe."""
        return await self._desk.change(
            self._manager, self._opened, lambda manager: work(ObjectHandles(manager))
        )

    def _opened(self) -> MemoryManager:
        return self.space

    async def _read(self, scope: Scope, rows: list[_Row]) -> list[Record]:
        if len(rows) <= QUICK_OBJECTS and sum(len(body) for _, body, _ in rows) <= _SOON_DECODED:
            return self._records(scope, rows)
        return await self._desk.aside(partial(self._records_of_many, scope, rows))

    def _records_of_many(self, scope: Scope, rows: list[_Row]) -> list[Record]:
        """Here goes what was read, too: it takes a while, and nobody else has it."""
        with collector_at_rest():  # else it looks at them all, several times, and holds up the loop
            found = self._records(scope, rows)
        rows.clear()
        return found

    # -- writing -----------------------------------------------------------------------------------

    def _replace(
        self,
        space: ObjectHandles,
        scope: Scope,
        removed: list[RecordEntry],
        name: str,
        new: list[tuple[Record, NewObject]],
    ) -> list[str]:
        """Free, store and mark in one step of the journal."""
        gone = {(entry.session, entry.id) for entry in removed}
        known = self._index.known(scope.user, name, {record.id for record, _ in new}, gone)
        fresh = [(record, item) for record, item in new if record.id not in known]
        united = [
            (known[record.id], known[record.id].marks | record.marks)
            for record, _ in new
            if record.id in known and not record.marks <= known[record.id].marks
        ]
        tags = {entry.handle: marks for entry, marks in united}
        placed = self._insert(
            space, scope.user, [item for _, item in fresh], self._index.handles(removed), tags
        )
        self._index.note([record for record, _ in fresh], scope.user, name, placed)
        for entry, marks in united:
            self._index.remark(entry, marks)
        return [record.id for record, _ in fresh]

    def _insert(
        self,
        space: ObjectHandles,
        user: str,
        new: Sequence[NewObject],
        free: Sequence[int],
        tags: Mapping[int, frozenset[str]],
    ) -> Sequence[Placed]:
        """Store records; where there is no room, vectors give way, the user's own first."""
        for whose in (user, None):
            if new and self._index.vectors and not space.fits(new):
                gone = self._drop_vectors_of(space, whose)
                free = [handle for handle in free if handle not in gone]
        return space.insert(new, free=free, tags=tags)

    def _drop_vectors_of(self, space: ObjectHandles, user: str | None) -> set[int]:
        """Free the vectors of a user, or of all; return their handles."""
        if user is None:
            vectors = set(self._index.vectors.all())
        else:
            entries = self._index.choose(Scope(user), EVERYTHING)
            vectors = set(self._index.vectors.beside(entry.handle for entry in entries))
        if vectors:
            space.free(sorted(vectors), "made room")
        return vectors

    def _put_vectors(
        self,
        manager: ObjectHandles,
        space: str,
        entries: Sequence[RecordEntry],
        vectors: Mapping[Place, bytes],
    ) -> None:
        """Store vectors in the place of older ones, in one step of the journal."""
        if not entries:
            return
        new = [
            vector_object(
                entry.user,
                entry.handle,
                space,
                vectors[Place(entry.session, entry.id, entry.seq)],
                entry.expires_at,
            )
            for entry in entries
        ]
        older = [self._index.vectors.find(entry.handle, space) for entry in entries]
        freed = [handle for handle in older if handle is not None]
        if not manager.fits(new):  # nothing is collected for the sake of what can be made again
            raise OutOfSpace(f"no room for {len(new)} vectors of {new[0].tenant!r}")
        placed = manager.insert(new, free=freed)
        for entry, (handle, _) in zip(entries, placed, strict=True):
            self._index.vectors.note(entry.handle, space, handle)

    # -- reading -----------------------------------------------------------------------------------

    def _chosen(self, space: ObjectHandles, scope: Scope, where: Where) -> list[RecordEntry]:
        """``_choose``, where that takes no longer than there is time."""
        space.expect(self._index.sessions.size(scope, where))
        return self._index.choose(scope, where)

    def _rows(
        self, space: ObjectHandles, scope: Scope, entries: Sequence[RecordEntry]
    ) -> list[_Row]:
        bodies = self._bodies(space, scope, entries)
        return [(entry, body, space.retention(entry.handle)) for entry, body in bodies]

    def _records(self, scope: Scope, rows: Iterable[_Row]) -> list[Record]:
        """Decode rows; what does not read back is reported and skipped."""
        found = []
        for entry, body, (importance, pinned) in rows:
            try:
                found.append(record_of(entry, body, importance, pinned))
            except CorruptData as error:
                self.report_corrupt(scope, entry.id, error)
        return found

    def _bodies(
        self, space: ObjectHandles, scope: Scope, entries: Sequence[RecordEntry]
    ) -> Iterable[tuple[RecordEntry, bytes]]:
        handles = [entry.handle for entry in entries]
        space.expect(len(handles), sum(map(space.size, handles)))
        try:
            return list(zip(entries, space.bodies(handles), strict=True))
        except CorruptData:
            return self._readable(space, scope, entries)

    def _readable(
        self, space: ObjectHandles, scope: Scope, entries: Sequence[RecordEntry]
    ) -> list[tuple[RecordEntry, bytes]]:
        """Read one by one, passing over what is damaged."""
        found = []
        for entry in entries:
            try:
                found.append((entry, space.body(entry.handle)))
            except CorruptData as error:
                self.report_corrupt(scope, entry.id, error)
        return found
