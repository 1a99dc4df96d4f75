"""The messages of a RAM session, ready to be handed out.

For each filter in use there is a shelf, which follows the session: what is appended, removed or
marked is brought up to date there, and nothing else is looked at. A shelf lends its messages out.
Handing them out is a copy of a list and of nothing in it; two readers never hold the same message.
"""

from __future__ import annotations

import threading
from bisect import bisect_left

from ..message import Msg
from ..message.lending import MessagePool
from ..message.sharing import FrozenMsg
from ..record import Record, Scope, Where
from ..store import MemoryStore

MAX_FILTERS = 16
MAX_POOLS = 2  # so that a reader may hold what it read before while it reads again


class Resident:
    """Shelves of lent messages over one session of a ``MemoryStore``."""

    def __init__(self, store: MemoryStore, scope: Scope) -> None:
        self._store = store
        self._scope = scope
        self._revision = (0, 0)
        self._shelves: dict[Where, _Shelf] = {}
        self._lock = threading.Lock()

    def messages(self, where: Where) -> list[Msg]:
        """Return the matching messages as they are now, for one reader alone."""
        with self._lock:
            self._catch_up()
            shelf = self._shelves.get(where)
            return (self._fill(where) if shelf is None else shelf).hand_out()

    def _catch_up(self) -> None:
        """Bring every shelf up to date, or forget them all if too much has happened."""
        news = self._store.follow_now(self._scope, self._revision)
        self._revision = news.revision
        if news.changed is None:
            self._shelves.clear()
            return
        for where, shelf in self._shelves.items():
            shelf.extend([record for record in news.appended if where.matches(record)])
            for seq, record in news.changed:
                shelf.settle(seq, record if record and where.matches(record) else None)

    def _fill(self, where: Where) -> _Shelf:
        revision, records = self._store.read_now(self._scope, where)
        if revision != self._revision or len(self._shelves) >= MAX_FILTERS:
            self._shelves.clear()  # another thread has written since we caught up, or too many
        self._revision = revision
        shelf = self._shelves[where] = _Shelf()
        shelf.extend(records)
        return shelf


class _Shelf:
    """Frozen messages in conversation order and, place by place, what is lent of them."""

    def __init__(self) -> None:
        self._seqs: list[int] = []
        self._frozen: list[FrozenMsg] = []
        self._pools: list[MessagePool] = []

    def extend(self, records: list[Record]) -> None:
        """Put records behind all others."""
        for record in records:
            self._insert(len(self._seqs), record)

    def settle(self, seq: int, record: Record | None) -> None:
        """Let a record, or nothing, stand at this place of the conversation."""
        place = bisect_left(self._seqs, seq)
        is_there = self._seqs[place : place + 1] == [seq]
        if record is None and is_there:
            del self._seqs[place], self._frozen[place]
            for pool in self._pools:
                pool.delete(place)
        elif record is not None and not is_there:
            self._insert(place, record)

    def hand_out(self) -> list[Msg]:
        """Return messages that nobody else holds. The pool they are from goes to the end: what is
        read next is looked for where it was longest ago."""
        ready = next((pool for pool in self._pools if pool.renew(self._frozen)), None)
        pool = MessagePool(self._frozen) if ready is None else ready
        others = [each for each in self._pools if each is not ready]
        self._pools = [*others, pool][-MAX_POOLS:]
        return pool.messages.copy()

    def _insert(self, place: int, record: Record) -> None:
        if isinstance(record.value, FrozenMsg):
            self._seqs.insert(place, record.seq)
            self._frozen.insert(place, record.value)
            for pool in self._pools:
                pool.insert(place, record.value)
