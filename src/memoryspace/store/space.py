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
from typing import Any, TypeAlias, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace as change

from ..collector import collector_at_rest
from ..errors import CorruptData, InvalidInput, OutOfSpace
from ..events import EventStream
from ..kernel import (
    QUICK_OBJECTS,
    Desk,
    Durability,
    LivingObject,
    MemoryManager,
    NewObject,
    ObjectHandles,
    Placed,
    Runtime,
    TieredMemoryManager,
)
from ..record import EVERYTHING, Record, Scope, Where, as_marks, text_of
from .codec import clean_text, dump_origin, dump_value, parse_origin, parse_value
from .contract import Changes, Clock, Store, admit, session_of
from .remains import Remainder
from .sessions import News, Sessions
from .space_vectors import SpaceVectors, object_of, vectors_in
from .users import USERS_AT_ONCE, Usage, UserPage
from .vectors import Kept, Place, check_space, check_vectors

HOT_CAPACITY = 64 << 20

T = TypeVar("T")

_NOTHING = Where(ids=frozenset())
_SOON_DECODED = 1 << 19  # bytes


class _Entry(Struct, frozen=True, gc=False):
    """What is known of a record without reading it."""

    id: str
    kind: str
    marks: frozenset[str]
    seq: int
    user: str
    session: str
    expires_at: float | None
    handle: int


_IN_FILES = Remainder(
    "the journal, older checkpoints and unused pages of the cold tier in the folder",
    "scrub() rewrites them, or they are overwritten in the course of time",
)

_Row: TypeAlias = tuple[_Entry, bytes, tuple[float, bool]]  # with importance, and if it is pinned


class _Payload(Struct, frozen=True, omit_defaults=True, rename={"id": "i", "session": "s"}):
    """A record as the payload of an object."""

    id: str
    session: str
    kind: str
    value: str
    created_at: float
    text: str | None = None
    origin: str | None = None


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
        self._opening = threading.Lock()
        self._desk = Desk("memoryspace-store")
        self._sessions: Sessions[_Entry] = Sessions()
        self._entries: dict[int, _Entry] = {}
        self._vectors = SpaceVectors()
        self._freed_at = 0  # the last change that freed something; -1 if no file knows of any
        if manager is not None:
            self._follow(manager)

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
            self._follow(manager)
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
            space.expect(len(records), sum(len(record.text) for record in records))
            new = [(record, _object_of(scope.user, name, record)) for record in admit(records)]
            removed = [] if where is _NOTHING else self._chosen(space, scope, where)
            is_late = if_found and not removed
            return [] if is_late else self._replace(space, scope, removed, name, new)

        return await self._change(work)

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
                self._remark(entry, marks)
            return len(pairs)

        return await self._change(work)

    async def delete(self, scope: Scope, where: Where = EVERYTHING) -> list[str]:
        def work(space: ObjectHandles) -> list[str]:
            chosen = self._chosen(space, scope, where)
            if chosen:
                space.free(self._handles(chosen), "deleted")
            return [entry.id for entry in chosen]

        return await self._change(work)

    async def count(self, scope: Scope, where: Where = EVERYTHING) -> int:
        def work(space: ObjectHandles) -> int:
            if not where.is_only_kind:
                space.expect(self._sessions.size(scope, where))
            return self._sessions.count(scope, where, self.clock())

        return await self._do(work)

    async def sessions(self, user: str) -> list[str]:
        return await self._do(lambda _: self._sessions.names(user, self.clock()))

    async def users(self, *, cursor: str | None = None, limit: int = USERS_AT_ONCE) -> UserPage:
        return await self._do(lambda _: self._sessions.users(cursor, limit, self.clock()))

    async def usage(self, user: str) -> Usage:
        """Return what a user has; sizes are known without reading anything."""

        def work(space: ObjectHandles) -> Usage:
            space.expect(self._sessions.size(Scope(user), EVERYTHING))
            entries = list(self._sessions.entries(user, self.clock()))
            size = sum(space.size(entry.handle) for entry in entries)
            return Usage(len(entries), len({entry.session for entry in entries}), size)

        return await self._do(work)

    async def changes(self, user: str, state: Any = None) -> Changes:
        scope = Scope(user)

        def work(space: ObjectHandles) -> tuple[News[_Entry], list[_Row]]:
            space.expect(self._sessions.size_since(user, state))
            news = self._sessions.since(user, state, self.clock())
            return news, self._rows(space, scope, news.entries)

        news, rows = await self._do(work)
        return Changes(news.state, await self._read(scope, rows), news.kept, news.gone)

    async def vectors(self, user: str, space: str, places: Collection[Place]) -> dict[int, bytes]:
        check_space(user, space)

        def work(manager: ObjectHandles) -> dict[int, bytes]:
            manager.expect(len(places))
            found: dict[int, int] = {}
            for entry in self._standing(user, places):
                handle = self._vectors.find(entry.handle, space)
                if handle is not None:
                    found[handle] = entry.seq
            return {found[handle]: vector for handle, vector in vectors_in(manager, found)}

        return await self._do(work)

    async def put_vectors(self, user: str, space: str, vectors: Mapping[Place, bytes]) -> int:
        check_vectors(user, space, vectors)

        def work(manager: ObjectHandles) -> int:
            manager.expect(len(vectors))
            standing = self._standing(user, vectors)
            self._put_vectors(manager, space, standing, vectors)
            return len(standing)

        return await self._change(work)

    async def vector_spaces(self, user: str) -> dict[str, Kept]:
        def work(manager: ObjectHandles) -> dict[str, Kept]:
            found = dict[str, Kept]()
            for entry in self._chosen(manager, Scope(user), EVERYTHING):
                spaces = self._vectors.spaces(entry.handle)
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
            held = [self._vectors.find(entry.handle, space) for entry in entries]
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
        if oldest >= self._freed_at:
            self._freed_at = -1

    async def remains(self) -> tuple[Remainder, ...]:
        """Tell whether anything was freed, as far as is known, since the files were rewritten."""

        def work(space: ObjectHandles) -> tuple[Remainder, ...]:
            return () if not space.has_files or self._freed_at < 0 else (_IN_FILES,)

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
                self._sessions = Sessions()
                self._entries.clear()
                self._vectors = SpaceVectors()
                self._freed_at = max(0, self._freed_at)  # by whoever has the folder meanwhile

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
        removed: list[_Entry],
        name: str,
        new: list[tuple[Record, NewObject]],
    ) -> list[str]:
        """Free, store and mark in one step of the journal."""
        gone = {(entry.session, entry.id) for entry in removed}
        known = self._known(scope.user, name, {record.id for record, _ in new}, gone)
        fresh = [(record, item) for record, item in new if record.id not in known]
        united = [
            (known[record.id], known[record.id].marks | record.marks)
            for record, _ in new
            if record.id in known and not record.marks <= known[record.id].marks
        ]
        tags = {entry.handle: marks for entry, marks in united}
        placed = self._insert(
            space, scope.user, [item for _, item in fresh], self._handles(removed), tags
        )
        self._note([record for record, _ in fresh], scope.user, name, placed)
        for entry, marks in united:
            self._remark(entry, marks)
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
            if new and self._vectors and not space.fits(new):
                gone = self._drop_vectors_of(space, whose)
                free = [handle for handle in free if handle not in gone]
        return space.insert(new, free=free, tags=tags)

    def _drop_vectors_of(self, space: ObjectHandles, user: str | None) -> set[int]:
        """Free the vectors of a user, or of all; return their handles."""
        if user is None:
            vectors = set(self._vectors.all())
        else:
            entries = self._choose(Scope(user), EVERYTHING)
            vectors = set(self._vectors.beside(entry.handle for entry in entries))
        if vectors:
            space.free(sorted(vectors), "made room")
        return vectors

    def _handles(self, entries: Sequence[_Entry]) -> list[int]:
        """Return what is to be freed with records: their vectors as well."""
        if not entries:
            return []
        own = [entry.handle for entry in entries]
        return [*own, *self._vectors.beside(own)]

    def _standing(self, user: str, places: Iterable[Place]) -> list[_Entry]:
        standing = self._sessions.standing_at(user, places, self.clock())
        return [session.records[place.id] for place, session in standing]

    def _put_vectors(
        self,
        manager: ObjectHandles,
        space: str,
        entries: Sequence[_Entry],
        vectors: Mapping[Place, bytes],
    ) -> None:
        """Store vectors in the place of older ones, in one step of the journal."""
        if not entries:
            return
        new = [
            object_of(
                entry.user,
                entry.handle,
                space,
                vectors[Place(entry.session, entry.id, entry.seq)],
                entry.expires_at,
            )
            for entry in entries
        ]
        older = [self._vectors.find(entry.handle, space) for entry in entries]
        freed = [handle for handle in older if handle is not None]
        if not manager.fits(new):  # nothing is collected for the sake of what can be made again
            raise OutOfSpace(f"no room for {len(new)} vectors of {new[0].tenant!r}")
        placed = manager.insert(new, free=freed)
        for entry, (handle, _) in zip(entries, placed, strict=True):
            self._vectors.note(entry.handle, space, handle)

    def _known(
        self, user: str, name: str, ids: set[str], gone: set[tuple[str, str]]
    ) -> dict[str, _Entry]:
        session = self._sessions.find(user, name)
        if session is None:
            return {}
        session.expire(self.clock())
        return {
            record_id: session.records[record_id]
            for record_id in ids
            if record_id in session.records and (name, record_id) not in gone
        }

    def _note(
        self, records: Sequence[Record], user: str, name: str, placed: Sequence[Placed]
    ) -> None:
        for record, (handle, stamp) in zip(records, placed, strict=True):
            self._add(
                _Entry(
                    record.id,
                    record.kind,
                    record.marks,
                    stamp,
                    user,
                    name,
                    record.expires_at,
                    handle,
                )
            )

    def _add(self, entry: _Entry) -> None:
        self._entries[entry.handle] = entry
        self._sessions.open(entry.user, entry.session).add(entry)

    def _remark(self, entry: _Entry, marks: frozenset[str]) -> None:
        marked = change(entry, marks=marks)
        self._entries[entry.handle] = marked
        self._sessions.of(entry.user, entry).remark(entry, marked)

    # -- reading -----------------------------------------------------------------------------------

    def _chosen(self, space: ObjectHandles, scope: Scope, where: Where) -> list[_Entry]:
        """``_choose``, where that takes no longer than there is time."""
        space.expect(self._sessions.size(scope, where))
        return self._choose(scope, where)

    def _choose(self, scope: Scope, where: Where) -> list[_Entry]:
        return self._sessions.choose(scope, where, self.clock())

    def _rows(self, space: ObjectHandles, scope: Scope, entries: Sequence[_Entry]) -> list[_Row]:
        bodies = self._bodies(space, scope, entries)
        return [(entry, body, space.retention(entry.handle)) for entry, body in bodies]

    def _records(self, scope: Scope, rows: Iterable[_Row]) -> list[Record]:
        found = (self._record(scope, *row) for row in rows)
        return [record for record in found if record is not None]

    def _bodies(
        self, space: ObjectHandles, scope: Scope, entries: Sequence[_Entry]
    ) -> Iterable[tuple[_Entry, bytes]]:
        handles = [entry.handle for entry in entries]
        space.expect(len(handles), sum(map(space.size, handles)))
        try:
            return list(zip(entries, space.bodies(handles), strict=True))
        except CorruptData:
            return self._readable(space, scope, entries)

    def _readable(
        self, space: ObjectHandles, scope: Scope, entries: Sequence[_Entry]
    ) -> list[tuple[_Entry, bytes]]:
        """Read one by one, passing over what is damaged."""
        found = []
        for entry in entries:
            try:
                found.append((entry, space.body(entry.handle)))
            except CorruptData as error:
                self.report_corrupt(scope, entry.id, error)
        return found

    def _record(
        self, scope: Scope, entry: _Entry, body: bytes, kept: tuple[float, bool]
    ) -> Record | None:
        try:
            payload = _payload_of(body)
            value = parse_value(entry.kind, payload.value)
            origin = parse_origin(payload.origin)
        except CorruptData as error:
            self.report_corrupt(scope, entry.id, error)
            return None
        return Record(
            entry.id,
            value,
            text_of(value) if payload.text is None else payload.text,
            entry.marks,
            entry.kind,
            payload.created_at,
            entry.expires_at,
            kept[0],
            kept[1],
            origin,
            entry.seq,
            entry.session,
        )

    # -- following the space -----------------------------------------------------------------------

    def _follow(self, manager: MemoryManager) -> None:
        """Learn what is in a space, and what leaves it for whatever reason."""
        space = ObjectHandles(manager)
        with space.lock:
            self._learn(space)
            space.follow(lambda handle: self._forget(space, handle), lambda: self._learn(space))

    def _learn(self, space: ObjectHandles) -> None:
        self._sessions = Sessions()
        self._entries.clear()
        self._vectors = SpaceVectors()
        for found in space.living():
            if not self._vectors.learn(space, found):
                self._recall(space, found)
        self._vectors.settle(self._entries)
        for session in {(entry.user, entry.session) for entry in self._entries.values()}:
            self._sessions.open(*session).sort()

    def _recall(self, space: ObjectHandles, found: LivingObject) -> None:
        if found.expires_at is not None and found.expires_at <= self.clock():
            return  # only the space has yet to forget it; its id may have been used again
        try:
            payload = _payload_of(space.body(found.handle))
        except CorruptData as error:
            self.report_corrupt(Scope(found.tenant or "unknown"), space.id(found.handle), error)
            return
        self._add(
            _Entry(
                payload.id,
                payload.kind,
                found.tags,
                found.stamp,
                found.tenant,
                payload.session,
                found.expires_at,
                found.handle,
            )
        )

    def _forget(self, space: ObjectHandles, handle: int) -> None:
        self._freed_at = space.last_lsn
        self._vectors.freed(handle)
        entry = self._entries.pop(handle, None)
        if entry is None:
            return
        session = self._sessions.find(entry.user, entry.session)
        known = None if session is None else session.records.get(entry.id)
        if known is not None and known.handle == handle:  # else it has expired from the index
            self._sessions.remove(entry.user, (known,))


class _Body(Struct, frozen=True, array_like=True):
    payload: _Payload
    embedding: Any = None
    name: Any = None


_decode = msgspec.msgpack.Decoder(_Body).decode


def _payload_of(body: bytes) -> _Payload:
    try:
        return _decode(body).payload
    except (msgspec.DecodeError, UnicodeError) as error:
        raise CorruptData("its bytes in the space do not read back") from error


def _object_of(user: str, session: str, record: Record) -> NewObject:
    value = dump_value(record)
    payload = _Payload(
        record.id,
        session,
        record.kind,
        value,
        record.created_at,
        None if record.text == text_of(record.value) else clean_text(record.text),
        dump_origin(record.origin),
    )
    return NewObject(
        msgspec.to_builtins(payload),
        tags=record.marks,
        importance=record.importance,
        pin=record.pinned,
        tenant=user,
        expires_at=record.expires_at,
    )
