"""Serialised replies: concurrent calls of an agent are answered one after the other.

So contexts never mix: the messages of a call reach the memory only after the previous reply is
complete. Within an event loop, calls wait in the order of their arrival.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar

from ..errors import AgentBusy
from ..loops import PerLoop

ENDED = (Exception, asyncio.CancelledError)  # what may end a reply, besides an answer


class ReplyTurn:
    """The exclusive right to reply, until it is released."""

    def __init__(self, turns: object) -> None:
        self.of = id(turns)
        self.is_over = False
        self._cancelled_before = _cancellations()

    def check(self) -> None:
        """Raise ``CancelledError`` if a tool or other foreign code has swallowed a cancellation."""
        if _cancellations() > self._cancelled_before:
            raise asyncio.CancelledError


# The turns that the running code holds; an outer agent's come before an inner one's.
_held: ContextVar[tuple[ReplyTurn, ...]] = ContextVar("memoryspace_turns", default=())


class ReplyTurns:
    """Grants one turn at a time per event loop."""

    def __init__(self) -> None:
        self._locks = PerLoop(asyncio.Lock)

    @asynccontextmanager
    async def take(self) -> AsyncIterator[ReplyTurn]:
        """Wait for a turn; raise ``AgentBusy`` if the caller already holds it."""
        if any(held.of == id(self) and not held.is_over for held in _held.get()):
            raise AgentBusy("an agent was called from within its own reply, e.g. by its tool")
        async with self._locks.get():
            turn = ReplyTurn(self)
            token = _held.set((*_held.get(), turn))
            try:
                yield turn
            finally:
                turn.is_over = True
                _held.reset(token)


def _cancellations() -> int:
    """Return the number of pending cancellation requests of the running task."""
    task = asyncio.current_task()
    return task.cancelling() if task is not None else 0
