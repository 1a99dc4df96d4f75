"""``MemoryStore``: the shelf in RAM, and the contract in its most readable form.

Each session is a dict of records in conversation order, so adding, finding and removing one costs
the same at any size. Values are frozen when they come in; nothing is encoded.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import count
from typing import TypeAlias, cast

from msgspec.structs import replace as change

from ..events import EventStream
from ..message import Msg, freeze
from ..message.sharing import copy_parts
from ..record import EVERYTHING, Record, Scope, Value, Where, as_marks
from .contract import Clock, Store, admit, limited, session_of

# (last change other than an append, last seq): while it is the same, so is the session.
Revision: TypeAlias = tuple[int, int]

_NOTHING = Where(ids=frozenset())


class MemoryStore(Store):
    """Records in this process's memory. Safe to share between threads and event loops."""

    def __init__(self, *, clock: Clock = time.time, events: EventStream | None = None) -> None:
        super().__init__(clock=clock, events=events)
        self._users: dict[str, dict[str, _Session]] = {}
        self._last_seq = 0
        self._changes = count(1)  # never repeats, also not for a session that comes again
        # One lock: every verb runs whole under it, so each is atomic to every other thread.
        self._lock = threading.RLock()

    async def append(self, scope: Scope, records: Sequence[Record]) -> list[str]:
        return self.append_now(scope, records)

    async def select(self, scope: Scope, where: Where = EVERYTHING) -> list[Record]:
        return self.select_now(scope, where)

    async def replace(self, scope: Scope, where: Where, records: Sequence[Record]) -> list[str]:
        return self.replace_now(scope, where, records)

    async def mark(
        self, scope: Scope, where: Where, *, add: Collection[str] = (), remove: Collection[str] = ()
    ) -> int:
        put_on, take_off = as_marks(frozenset(add)), as_marks(frozenset(remove))
        with self._lock:
            chosen = self._choose(scope, where)
            return sum(
                self._session(scope, record).remark(record, put_on, take_off) for record in chosen
            )

    async def delete(self, scope: Scope, where: Where = EVERYTHING) -> list[str]:
        with self._lock:
            return self._remove(scope, where)

    async def count(self, scope: Scope, where: Where = EVERYTHING) -> int:
        with self._lock:
            if scope.session is not None and where.is_only_kind:
                session = self._users.get(scope.user, {}).get(scope.session)
                return 0 if session is None else session.count(where.kind, self.clock())
            return len(self._choose(scope, where))

    def append_now(self, scope: Scope, records: Sequence[Record]) -> list[str]:
        """``append``, for callers without an event loop."""
        return self.replace_now(scope, _NOTHING, records)

    def select_now(self, scope: Scope, where: Where = EVERYTHING) -> list[Record]:
        """``select``, for callers without an event loop."""
        with self._lock:
            return [_handed_out(record) for record in self._choose(scope, where)]

    def replace_now(self, scope: Scope, where: Where, records: Sequence[Record]) -> list[str]:
        """``replace``, for callers without an event loop."""
        name = session_of(scope)
        new = [change(record, value=_frozen(record.value)) for record in admit(records)]
        with self._lock:  # from here on nothing can fail: all of it happens
            if where is not _NOTHING:
                self._remove(scope, where)
            if not new:
                return []
            session = self._session_named(scope.user, name)
            session.expire(self.clock())
            return [record.id for record in new if self._put(session, name, record)]

    def read_now(self, scope: Scope, where: Where) -> tuple[Revision, list[Record]]:
        """Return a session's revision and, of that very moment, the matching records."""
        with self._lock:
            found = self.select_now(scope, where)
            session = self._users.get(scope.user, {}).get(session_of(scope))
            revision = (0, 0) if session is None else (session.last_change, session.last_seq)
            return revision, found

    def _put(self, session: _Session, name: str, record: Record) -> bool:
        """The one door for new records: gives the seq, or unites the marks of a known one."""
        known = session.records.get(record.id)
        if known is not None:
            session.remark(known, record.marks, frozenset())
            return False
        self._last_seq += 1
        session.add(change(record, seq=self._last_seq, session=name))
        return True

    def _remove(self, scope: Scope, where: Where) -> list[str]:
        """Remove records, and sessions and users that have none left."""
        chosen = self._choose(scope, where)
        for record in chosen:
            self._session(scope, record).remove(record.id)
        sessions = self._users.get(scope.user, {})
        for name in {record.session for record in chosen}:
            if name is not None and not sessions[name].records:
                del sessions[name]
        if not sessions:
            self._users.pop(scope.user, None)
        return [record.id for record in chosen]

    def _session_named(self, user: str, name: str) -> _Session:
        sessions = self._users.setdefault(user, {})
        session = sessions.get(name)
        if session is None:
            session = sessions[name] = _Session(self._changes)
        return session

    def _session(self, scope: Scope, record: Record) -> _Session:
        assert record.session is not None  # given by _put
        return self._users[scope.user][record.session]

    def _choose(self, scope: Scope, where: Where) -> list[Record]:
        sessions = self._users.get(scope.user, {})
        if scope.session is not None:
            session = sessions.get(scope.session)
            found = [] if session is None else session.choose(where, self.clock())
        else:
            now = self.clock()
            found = [record for each in sessions.values() for record in each.choose(where, now)]
            found.sort(key=lambda record: record.seq)
        return limited(found, where)


class _Session:
    """One session's records in conversation order, and which of them carry which mark."""

    def __init__(self, changes: Iterator[int]) -> None:
        self.records: dict[str, Record] = {}
        self._changes = changes
        self.last_change = next(changes)
        self.last_seq = 0
        self._of_kind: Counter[str] = Counter()
        self._marked: defaultdict[str, set[str]] = defaultdict(set)
        self._due: list[tuple[float, str]] = []

    def add(self, record: Record) -> None:
        self.records[record.id] = record
        self.last_seq = record.seq
        self._of_kind[record.kind] += 1
        for mark in record.marks:
            self._marked[mark].add(record.id)
        if record.expires_at is not None:
            heapq.heappush(self._due, (record.expires_at, record.id))

    def remove(self, record_id: str) -> None:
        record = self.records.pop(record_id)
        self._of_kind[record.kind] -= 1
        self._unmark(record_id, record.marks)
        self.last_change = next(self._changes)

    def remark(self, record: Record, add: frozenset[str], remove: frozenset[str]) -> bool:
        marks = (record.marks - remove) | add
        if marks == record.marks:
            return False
        self._unmark(record.id, record.marks - marks)
        for mark in marks - record.marks:
            self._marked[mark].add(record.id)
        self.records[record.id] = change(record, marks=marks)
        self.last_change = next(self._changes)
        return True

    def _unmark(self, record_id: str, marks: Iterable[str]) -> None:
        for mark in marks:
            self._marked[mark].discard(record_id)
            if not self._marked[mark]:
                del self._marked[mark]

    def expire(self, now: float) -> None:
        while self._due and self._due[0][0] <= now:
            due, record_id = heapq.heappop(self._due)
            record = self.records.get(record_id)
            if record is not None and record.expires_at == due:  # else removed and added anew
                self.remove(record_id)

    def count(self, kind: str | None, now: float) -> int:
        self.expire(now)
        return len(self.records) if kind is None else self._of_kind[kind]

    def choose(self, where: Where, now: float) -> list[Record]:
        self.expire(now)
        return [record for record in self._candidates(where) if where.matches(record)]

    def _candidates(self, where: Where) -> Iterable[Record]:
        """Return the fewest records that may match, in conversation order."""
        if where.ids is not None:
            return self._in_order(where.ids)
        if where.marks:
            marked = (self._marked.get(mark, ()) for mark in where.marks)
            return self._in_order({record_id for ids in marked for record_id in ids})
        if where.after is not None:
            return reversed(list(self._newest_down_to(where.after)))
        return self.records.values()

    def _in_order(self, ids: Collection[str]) -> list[Record]:
        found = [self.records[record_id] for record_id in ids if record_id in self.records]
        found.sort(key=lambda record: record.seq)
        return found

    def _newest_down_to(self, seq: int) -> Iterator[Record]:
        for record in reversed(self.records.values()):
            if record.seq <= seq:
                return
            yield record


def _frozen(value: Value) -> Value:
    return freeze(value) if isinstance(value, Msg) else cast(Value, copy_parts(value))


def _handed_out(record: Record) -> Record:
    """A frozen message or a text can be shared; a dict or list is copied for each reader."""
    if isinstance(record.value, Msg | str):
        return record
    return change(record, value=copy_parts(record.value))
