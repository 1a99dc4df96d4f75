"""``Seat``: one user's index in a process, and whose turn it is to use it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from ...embedding import Embedder
from ...loops import PerLoop
from ...store.contract import Changes
from .packed import Vector
from .user_index import Made, UserIndex

T = TypeVar("T")


class Work(NamedTuple, Generic[T]):
    """Something to be done with an index; ``is_quick`` if it takes no time to speak of."""

    do: Callable[[UserIndex], T]
    is_quick: bool = False


class Vectors(NamedTuple):
    """What was read of vectors before a change is applied, and who made them."""

    by_text: Mapping[str, Vector]
    by: Embedder | None = None


class Seat:
    """One user's index, and whose turn it is. ``counted`` are its bytes as last counted."""

    def __init__(self, make_index: Callable[[], UserIndex]) -> None:
        self._make_index = make_index
        self.index = make_index()
        self.counted = self.held = 0
        self._turns = PerLoop(asyncio.Lock)
        self._lock = threading.RLock()  # whoever touches the index holds it, in whichever thread
        self._begun: set[asyncio.Future[Any]] = set()  # a loop alone would not hold on to a task

    async def in_turn(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do some work when nobody else of this loop does; once begun, it is done to the end."""
        turn = self._turns.get()
        await turn.acquire()
        task = asyncio.ensure_future(work())
        self._begun.add(task)
        task.add_done_callback(partial(self._hand_on, turn))
        return await asyncio.shield(task)

    def _hand_on(self, turn: asyncio.Lock, done: asyncio.Future[Any]) -> None:
        self._begun.discard(done)
        turn.release()
        if not done.cancelled():
            done.exception()  # looked at: whoever waited for it may have been cancelled

    def alone(self, work: Callable[[UserIndex], T]) -> T:
        """Do something with the index while no other thread does."""
        with self._lock:
            return work(self.index)

    def brought_up_to_date(
        self,
        seen: object,
        changes: Changes,
        now: float,
        do: Callable[[UserIndex], T],
        known: Vectors,
    ) -> tuple[T, Made] | None:
        """Apply what changed since ``seen`` and do the work; ``None`` if that is not the state.

        Then another loop has applied its changes first, and these may be older. With what came of
        the work, the vectors are returned that were made.
        """
        with self._lock:
            if self.index.state is not seen:
                return None
            try:
                self.index.apply(changes, known.by_text, known.by)
                self.index.expire(now)
            except BaseException:  # half applied: nobody may see it
                self.index = self._make_index()
                raise
            done = do(self.index), self.index.take_made()
            self.held = self.index.nbytes  # here: it may take a millisecond
            return done

    async def in_thread(self, work: Callable[[], T], *, unless_quick: bool) -> T:
        """Do some work in a thread; here, if it is quick and no other thread has its turn."""
        if unless_quick and self._lock.acquire(blocking=False):
            try:
                return work()
            finally:
                self._lock.release()
        return await asyncio.to_thread(work)
