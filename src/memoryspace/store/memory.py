"""``MemoryStore``: the backend in RAM, and the most readable implementation of the contract.

Values are frozen when they are stored. Nothing is encoded.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, cast

from msgspec.structs import replace as change

from ..events import EventStream
from ..message import Msg, freeze, new_id, thaw
from ..message.sharing import copy_parts, freeze_own
from ..record import EVERYTHING, Record, Scope, Value, Where, as_marks
from .contract import Changes, Clock, Store, admit, check_new, session_of
from .remains import Remainder
from .session import Session
from .sessions import Sessions
from .users import USERS_AT_ONCE, UserPage
from .vectors import Kept, Place, check_space, check_vectors

# (last change other than an append, last seq): as long as it is equal, the session is unchanged.
Revision: TypeAlias = tuple[int, int]

_NOTHING = Where(ids=frozenset())
_NEVER: Revision = (0, 0)  # of a session that does not exist


class Followed(NamedTuple):
    """The changes to a session since a revision.

    ``changed`` holds the seq of each record that was removed or marked, with the record if it still
    exists. It is ``None`` if the changes are no longer known; then read the whole session again.
    """

    revision: Revision
    appended: list[Record]
    changed: list[tuple[int, Record | None]] | None


class MemoryStore(Store):
    """A store in this process's memory. Safe to share between threads and event loops.

    Args:
        clock: Returns the current time in seconds since the epoch.
        events: The stream to emit events on; a new one by default.

    Example::

        store = MemoryStore()
        await store.append(Scope("alice", "s1"), [Record("r1", "Tea.", kind="note")])
        # ['r1']
    """

    def __init__(self, *, clock: Clock = time.time, events: EventStream | None = None) -> None:
        super().__init__(clock=clock, events=events)
        self._sessions: Sessions[Record] = Sessions()
        self._last_seq = 0
        # Every operation holds this lock from start to end, so it is atomic for other threads.
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        return f"MemoryStore(last_seq={self._last_seq})"

    @property
    def is_durable(self) -> bool:
        """Always ``False``: the records end with the process."""
        return False

    async def append(self, scope: Scope, records: Sequence[Record]) -> list[str]:
        return self.replace_now(scope, _NOTHING, records)

    async def select(self, scope: Scope, where: Where = EVERYTHING) -> list[Record]:
        return self.select_now(scope, where)

    async def replace(
        self, scope: Scope, where: Where, records: Sequence[Record], *, if_found: bool = False
    ) -> list[str]:
        return self.replace_now(scope, where, records, if_found=if_found)

    async def mark(
        self, scope: Scope, where: Where, *, add: Collection[str] = (), remove: Collection[str] = ()
    ) -> int:
        put_on, take_off = as_marks(frozenset(add)), as_marks(frozenset(remove))
        with self._lock:
            return sum(
                self._remark(self._sessions.of(scope.user, record), record, put_on, take_off)
                for record in self._choose(scope, where)
            )

    async def delete(self, scope: Scope, where: Where = EVERYTHING) -> list[str]:
        with self._lock:
            return self._remove(scope, where)

    async def count(self, scope: Scope, where: Where = EVERYTHING) -> int:
        with self._lock:
            return self._sessions.count(scope, where, self.clock())

    async def sessions(self, user: str) -> list[str]:
        with self._lock:
            return self._sessions.names(user, self.clock())

    async def users(self, *, cursor: str | None = None, limit: int = USERS_AT_ONCE) -> UserPage:
        with self._lock:
            return self._sessions.users(cursor, limit, self.clock())

    async def changes(self, user: str, state: Any = None) -> Changes:
        with self._lock:
            news = self._sessions.since(user, state, self.clock())
        records = [_handed_out(record) for record in news.entries]
        return Changes(news.state, records, news.kept, news.gone)

    async def vectors(self, user: str, space: str, places: Collection[Place]) -> dict[int, bytes]:
        check_space(user, space)
        with self._lock:
            standing = self._sessions.standing_at(user, places, self.clock())
            held = {place.seq: session.vectors.get(place.id, {}) for place, session in standing}
            return {seq: spaces[space] for seq, spaces in held.items() if space in spaces}

    async def put_vectors(self, user: str, space: str, vectors: Mapping[Place, bytes]) -> int:
        check_vectors(user, space, vectors)
        with self._lock:
            standing = [*self._sessions.standing_at(user, vectors, self.clock())]
            for place, session in standing:
                session.vectors.setdefault(place.id, {})[space] = vectors[place]
            return len(standing)

    async def vector_spaces(self, user: str) -> dict[str, Kept]:
        found: dict[str, Kept] = {}
        with self._lock:
            for session in self._sessions.living(user, self.clock()):
                for space, vector in _every(session):
                    had = found.get(space, Kept(0, 0))
                    found[space] = Kept(had.count + 1, had.size + len(vector))
        return found

    async def remains(self) -> tuple[Remainder, ...]:
        """Return nothing: records deleted from RAM are in no file."""
        return ()

    async def drop_vectors(self, user: str, space: str) -> int:
        check_space(user, space)
        dropped = 0
        with self._lock:
            for session in self._sessions.living(user, self.clock()):
                for record_id, spaces in list(session.vectors.items()):
                    dropped += spaces.pop(space, None) is not None
                    if not spaces:
                        del session.vectors[record_id]
        return dropped

    def append_now(self, scope: Scope, records: Sequence[Record]) -> list[str]:
        """``append``, for callers without an event loop."""
        return self.replace_now(scope, _NOTHING, records)

    def select_now(self, scope: Scope, where: Where = EVERYTHING) -> list[Record]:
        """``select``, for callers without an event loop."""
        with self._lock:
            return [_handed_out(record) for record in self._choose(scope, where)]

    def replace_now(
        self, scope: Scope, where: Where, records: Sequence[Record], *, if_found: bool = False
    ) -> list[str]:
        """``replace``, for callers without an event loop."""
        name = session_of(scope)
        new = admit(records)
        values = [_frozen(record.value) for record in new]
        with self._lock:  # nothing below can fail, so the change is all or nothing
            removed = [] if where is _NOTHING else self._remove(scope, where)
            if not new or (if_found and not removed):
                return []
            session = self._sessions.open(scope.user, name)
            session.expire(self.clock())
            return [
                record.id
                for record, value in zip(new, values, strict=True)
                if self._put(session, name, record, value)
            ]

    def append_all_now(self, scope: Scope, records: Sequence[Record]) -> None:
        """Append every message, with a fresh id where its own is taken."""
        name = session_of(scope)
        new = [check_new(record) for record in records]
        values = [_frozen(record.value) for record in new]
        if not new:
            return
        with self._lock:
            session = self._sessions.open(scope.user, name)
            session.expire(self.clock())
            for record, value in zip(new, values, strict=True):
                if record.id in session.records:
                    record, value = _anew(record, value)
                self._put(session, name, record, value)

    def read_now(self, scope: Scope, where: Where) -> tuple[Revision, list[Record]]:
        """Return a session's revision and its matching records, read at the same moment."""
        with self._lock:
            found = self.select_now(scope, where)
            session = self._sessions.find(scope.user, session_of(scope))
            revision = _NEVER if session is None else (session.last_change, session.last_seq)
            return revision, found

    def follow_now(self, scope: Scope, known: Revision) -> Followed:
        """Return what changed in a session since a revision. The messages are shared."""
        with self._lock:
            session = self._sessions.find(scope.user, session_of(scope))
            if session is None:
                return Followed(_NEVER, [], [] if known == _NEVER else None)
            changed = session.changed_after(known[0], self.clock())
            revision = (session.last_change, session.last_seq)
            return Followed(
                revision, session.after(known[1]) if changed is not None else [], changed
            )

    def _put(self, session: Session[Record], name: str, record: Record, value: Value) -> bool:
        """Store a new record under the next seq, or merge its marks into a known one.

        All writes of new records go through here.
        """
        known = session.records.get(record.id)
        if known is not None:
            self._remark(session, known, record.marks, frozenset())
            return False
        self._last_seq += 1
        session.add(change(record, value=value, seq=self._last_seq, session=name))
        return True

    @staticmethod
    def _remark(
        session: Session[Record], record: Record, add: frozenset[str], remove: frozenset[str]
    ) -> bool:
        marks = (record.marks - remove) | add
        if marks == record.marks:
            return False
        session.remark(record, change(record, marks=marks))
        return True

    def _remove(self, scope: Scope, where: Where) -> list[str]:
        if where is EVERYTHING:
            return [record.id for record in self._sessions.take(scope, self.clock())]
        chosen = self._choose(scope, where)
        self._sessions.remove(scope.user, chosen)
        return [record.id for record in chosen]

    def _choose(self, scope: Scope, where: Where) -> list[Record]:
        return self._sessions.choose(scope, where, self.clock())


def _every(session: Session[Record]) -> Iterator[tuple[str, bytes]]:
    return (each for spaces in session.vectors.values() for each in spaces.items())


def _frozen(value: Value) -> Value:
    return freeze(value) if isinstance(value, Msg) else cast(Value, copy_parts(value))


def _anew(record: Record, value: Value) -> tuple[Record, Value]:
    """Return a record and its value, a message, under a fresh id."""
    msg = thaw(cast(Msg, value))
    msg.id = new_id()
    return change(record, id=msg.id), freeze_own(msg)


def _handed_out(record: Record) -> Record:
    """Return a record that a reader may change: messages and texts shared, the rest copied."""
    if isinstance(record.value, Msg | str):
        return record
    return change(record, value=copy_parts(record.value))
