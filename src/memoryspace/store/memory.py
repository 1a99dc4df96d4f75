"""``MemoryStore``: the shelf in RAM, and the contract in its most readable form.

Values are frozen when they come in; nothing is encoded.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Sequence
from typing import Any, TypeAlias, cast

from msgspec.structs import replace as change

from ..events import EventStream
from ..message import Msg, freeze
from ..message.sharing import copy_parts
from ..record import EVERYTHING, Record, Scope, Value, Where, as_marks
from .contract import Changes, Clock, Store, admit, session_of
from .session import Session
from .sessions import Sessions

# (last change other than an append, last seq): while it is the same, so is the session.
Revision: TypeAlias = tuple[int, int]

_NOTHING = Where(ids=frozenset())


class MemoryStore(Store):
    """Records in this process's memory. Safe to share between threads and event loops."""

    def __init__(self, *, clock: Clock = time.time, events: EventStream | None = None) -> None:
        super().__init__(clock=clock, events=events)
        self._sessions: Sessions[Record] = Sessions()
        self._last_seq = 0
        # One lock: every verb runs whole under it, so each is atomic to every other thread.
        self._lock = threading.RLock()

    async def append(self, scope: Scope, records: Sequence[Record]) -> list[str]:
        return self.append_now(scope, records)

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

    async def changes(self, user: str, state: Any = None) -> Changes:
        with self._lock:
            news = self._sessions.since(user, state, self.clock())
        records = [_handed_out(record) for record in news.entries]
        return Changes(news.state, records, news.kept, news.gone)

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
        new = [change(record, value=_frozen(record.value)) for record in admit(records)]
        with self._lock:  # from here on nothing can fail: all of it happens
            removed = [] if where is _NOTHING else self._remove(scope, where)
            if not new or (if_found and not removed):
                return []
            session = self._sessions.open(scope.user, name)
            session.expire(self.clock())
            return [record.id for record in new if self._put(session, name, record)]

    def read_now(self, scope: Scope, where: Where) -> tuple[Revision, list[Record]]:
        """Return a session's revision and, of that very moment, the matching records."""
        with self._lock:
            found = self.select_now(scope, where)
            session = self._sessions.find(scope.user, session_of(scope))
            revision = (0, 0) if session is None else (session.last_change, session.last_seq)
            return revision, found

    def _put(self, session: Session[Record], name: str, record: Record) -> bool:
        """The one door for new records: gives the seq, or unites the marks of a known one."""
        known = session.records.get(record.id)
        if known is not None:
            self._remark(session, known, record.marks, frozenset())
            return False
        self._last_seq += 1
        session.add(change(record, seq=self._last_seq, session=name))
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
        chosen = self._choose(scope, where)
        self._sessions.remove(scope.user, chosen)
        return [record.id for record in chosen]

    def _choose(self, scope: Scope, where: Where) -> list[Record]:
        return self._sessions.choose(scope, where, self.clock())


def _frozen(value: Value) -> Value:
    return freeze(value) if isinstance(value, Msg) else cast(Value, copy_parts(value))


def _handed_out(record: Record) -> Record:
    """A frozen message or a text can be shared; a dict or list is copied for each reader."""
    if isinstance(record.value, Msg | str):
        return record
    return change(record, value=copy_parts(record.value))
