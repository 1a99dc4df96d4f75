"""Cached views of a RAM session, one per filter in use.

A view follows the session incrementally: only records that were appended, removed or marked are
looked at. Reading copies a list and none of its messages, yet no two readers hold the same message:
each is lent to one reader.
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
MAX_POOLS = 2  # a reader may keep one result while it reads the next


class SessionViews:
    """The filtered views of one session of a ``MemoryStore``."""

    def __init__(self, store: MemoryStore, scope: Scope) -> None:
        self._store = store
        self._scope = scope
        self._revision = (0, 0)
        self._views: dict[Where, _FilteredView] = {}
        self._lock = threading.Lock()

    def messages(self, where: Where) -> list[Msg]:
        """Return the messages that match now, for one reader."""
        with self._lock:
            self._catch_up()
            view = self._views.get(where)
            return (self._fill(where) if view is None else view).hand_out()

    def _catch_up(self) -> None:
        """Update every view, or drop all of them if too much has changed."""
        news = self._store.follow_now(self._scope, self._revision)
        self._revision = news.revision
        if news.changed is None:
            self._views.clear()
            return
        for where, view in self._views.items():
            view.extend([record for record in news.appended if where.matches(record)])
            for seq, record in news.changed:
                view.update(seq, record if record and where.matches(record) else None)

    def _fill(self, where: Where) -> _FilteredView:
        revision, records = self._store.read_now(self._scope, where)
        if revision != self._revision or len(self._views) >= MAX_FILTERS:
            self._views.clear()  # another thread has written meanwhile, or too many filters
        self._revision = revision
        view = self._views[where] = _FilteredView()
        view.extend(records)
        return view


class _FilteredView:
    """The frozen messages that match one filter, in order, and the pools that lend them."""

    def __init__(self) -> None:
        self._seqs: list[int] = []
        self._frozen: list[FrozenMsg] = []
        self._pools: list[MessagePool] = []

    def extend(self, records: list[Record]) -> None:
        """Append records."""
        for record in records:
            self._insert(len(self._seqs), record)

    def update(self, seq: int, record: Record | None) -> None:
        """Set the record with this seq, or remove it."""
        place = bisect_left(self._seqs, seq)
        is_there = self._seqs[place : place + 1] == [seq]
        if record is None and is_there:
            del self._seqs[place], self._frozen[place]
            for pool in self._pools:
                pool.delete(place)
        elif record is not None and not is_there:
            self._insert(place, record)

    def hand_out(self) -> list[Msg]:
        """Return messages that no other reader holds.

        Their pool moves to the end, so the least recently used pool is tried first.
        """
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
