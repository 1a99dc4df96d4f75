"""Pools of lent messages: each is handed to one reader, and again when that one has let go of it.

Whether somebody holds a message is told by its reference count. Where that cannot be trusted (an
interpreter without one, or without a lock around it), every message counts as held: it is lent
anew each time, which is slower and just as right.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from .msg import Msg
from .sharing import FrozenMsg, Loan, is_on_loan, lend

WORTH = 8  # a pool is renewed if at most one in so many has to be lent anew


class Pool:
    """A lent message for each of a list of frozen ones, place by place.

    Only the pool and the readers it was copied for refer to a message; so one that nobody but the
    pool refers to can be handed out, and one that was changed belongs to one reader alone.
    """

    def __init__(self, frozen: Sequence[FrozenMsg]) -> None:
        self._loan = Loan()
        self.messages: list[Msg] = [lend(msg, self._loan) for msg in frozen]

    def insert(self, place: int, frozen: FrozenMsg) -> None:
        """Make room for one more."""
        self.messages.insert(place, lend(frozen, self._loan))

    def delete(self, place: int) -> None:
        """Let one go."""
        del self.messages[place]

    def renew(self, frozen: Sequence[FrozenMsg]) -> bool:
        """Lend anew what readers hold or have changed; if it is much, do nothing and return False.

        Only a reader can end a loan, and it holds the message then: so whatever another thread's
        reader changes while this looks, is among what is held.
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
# The count of what stands in one list and nowhere else; none has it where counts mean nothing.
_FREE = sum(map(_references, [Msg("nobody", "", "user")])) if _are_counts_exact() else -1
