"""One reply at a time: an agent that is asked twice at once answers one after the other.

So contexts never mix: what the second is asked comes into memory when the first is answered. In
each event loop the calls wait in the order in which they came.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar

from ..errors import AgentBusy
from ..loops import PerLoop

ENDED = (Exception, asyncio.CancelledError)  # what a reply may end with besides an answer


class Turn:
    """A turn that somebody has taken, until it is given back."""

    def __init__(self, turns: object) -> None:
        self.of = id(turns)
        self.is_over = False
        self._cancelled_before = _cancellations()

    def check(self) -> None:
        """Raise the ``CancelledError`` that a tool, or another stranger, has caught and kept."""
        if _cancellations() > self._cancelled_before:
            raise asyncio.CancelledError


# The turns that the running code is within, an outer agent's before an inner one's.
_held: ContextVar[tuple[Turn, ...]] = ContextVar("memoryspace_turns", default=())


class Turns:
    """Who takes a turn has it alone."""

    def __init__(self) -> None:
        self._locks = PerLoop(asyncio.Lock)

    @asynccontextmanager
    async def take(self) -> AsyncIterator[Turn]:
        """Wait for one's turn. ``AgentBusy`` for who would wait for himself for ever."""
        if any(held.of == id(self) and not held.is_over for held in _held.get()):
            raise AgentBusy("an agent was asked from within its own reply, as by one of its tools")
        async with self._locks.get():
            turn = Turn(self)
            token = _held.set((*_held.get(), turn))
            try:
                yield turn
            finally:
                turn.is_over = True
                _held.reset(token)


def _cancellations() -> int:
    """Return how often somebody wanted the running task to end, and has not taken it back."""
    task = asyncio.current_task()
    return task.cancelling() if task is not None else 0
