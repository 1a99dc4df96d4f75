"""The messages of a RAM session, ready to be handed out.

For each filter in use there is one list of lent messages. New messages are appended to the lists
they fit; anything else that changes the session empties them. Handing a list out is a copy of the
list and of nothing in it; a message that a reader has kept is lent anew before the next time.
"""

from __future__ import annotations

import threading

from ..message import Msg
from ..message.sharing import FrozenMsg, Loan, is_on_loan, lend
from ..record import Record, Scope, Where
from ..store import MemoryStore

MAX_FILTERS = 16


class Resident:
    """Lists of lent messages over one session of a ``MemoryStore``."""

    def __init__(self, store: MemoryStore, scope: Scope) -> None:
        self._store = store
        self._scope = scope
        self._revision = (0, 0)
        self._shelves: dict[Where, _Lent] = {}
        self._loan = Loan()
        self._lock = threading.Lock()

    def messages(self, where: Where) -> list[Msg]:
        """Return the matching messages as they are now."""
        with self._lock:
            self._catch_up()
            lent = self._shelves.get(where)
            return (self._fill(where) if lent is None else lent).messages.copy()

    def _catch_up(self) -> None:
        """Append what is new, forget everything after any other change, renew what was kept."""
        known_change, known_seq = self._revision
        self._revision, new = self._store.read_now(self._scope, Where(after=known_seq))
        if self._revision[0] != known_change:
            self._shelves.clear()
        for where, lent in self._shelves.items():
            lent.extend([record for record in new if where.matches(record)], self._loan)
        if self._loan.recalled:
            self._loan.recalled = False
            for lent in self._shelves.values():
                lent.renew(self._loan)

    def _fill(self, where: Where) -> _Lent:
        revision, records = self._store.read_now(self._scope, where)
        if revision != self._revision or len(self._shelves) >= MAX_FILTERS:
            self._shelves.clear()  # another thread has written since we caught up, or too many
        self._revision = revision
        lent = self._shelves[where] = _Lent()
        lent.extend(records, self._loan)
        return lent


class _Lent:
    """Frozen messages and, place by place, what is lent of them."""

    def __init__(self) -> None:
        self.frozen: list[FrozenMsg] = []
        self.messages: list[Msg] = []

    def extend(self, records: list[Record], loan: Loan) -> None:
        new = [record.value for record in records if isinstance(record.value, FrozenMsg)]
        self.frozen += new
        self.messages += [lend(msg, loan) for msg in new]

    def renew(self, loan: Loan) -> None:
        for place, msg in enumerate(self.messages):
            if not is_on_loan(msg):
                self.messages[place] = lend(self.frozen[place], loan)
