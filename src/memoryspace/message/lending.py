"""Pools of lent messages. A message goes to one reader, and to the next when it is released.

The reference count tells whether a reader still holds a message. On interpreters without exact
counts (no reference counting, or no global lock), every message counts as held: it is lent anew
each time, which is slower but equally correct.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from .msg import Msg
from .sharing import FrozenMsg, Loan, is_on_loan, lend

WORTH = 8  # renew a pool if at most one in this many messages must be lent anew


class MessagePool:
    """One lent message for each frozen message in a list, at the same index.

    Only the pool and its readers refer to a lent message. So a message that only the pool refers to
    can be lent again, and a changed message belongs to exactly one reader.
    """

    def __init__(self, frozen: Sequence[FrozenMsg]) -> None:
        self._loan = Loan()
        self.messages: list[Msg] = [lend(msg, self._loan) for msg in frozen]

    def insert(self, place: int, frozen: FrozenMsg) -> None:
        """Insert a message at ``place``."""
        self.messages.insert(place, lend(frozen, self._loan))

    def delete(self, place: int) -> None:
        """Remove the message at ``place``."""
        del self.messages[place]

    def renew(self, frozen: Sequence[FrozenMsg]) -> bool:
        """Replace the messages that readers hold or have changed.

        If there are too many of them, do nothing and return False. Only a reader can end a loan,
        and it holds the message then: a message that a reader in another thread changes during
        this check is among the held ones.
        """
        if not self._loan.recalled and _are_all_free(self.messages):
            return True
        kept = (place for place, msg in enumerate(self.messages) if not is_on_loan(msg))
        gone = {*kept, *_held(self.messages)}
        if len(gone) * WORTH > len(self.messages) + WORTH:
            return False
        self._loan.recalled = False
        for place in gone:
            self.messages[place] = lend(frozen[place], self._loan)
        return True


def _are_all_free(messages: list[Msg]) -> bool:
    return sum(map(_references, messages)) == _FREE * len(messages)


def _held(messages: list[Msg]) -> list[int]:
    return [place for place, count in enumerate(map(_references, messages)) if count != _FREE]


def _are_counts_exact() -> bool:
    has_lock: Callable[[], bool] | None = getattr(sys, "_is_gil_enabled", None)
    return hasattr(sys, "getrefcount") and (has_lock is None or has_lock())


_references: Callable[[Msg], int] = getattr(sys, "getrefcount", lambda _: 0)
# The count of an object that is in one list and nowhere else; -1 where counts are not exact.
_FREE = sum(map(_references, [Msg("nobody", "", "user")])) if _are_counts_exact() else -1
