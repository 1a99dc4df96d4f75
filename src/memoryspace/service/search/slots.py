"""``IndexSlot``: one user's index in this process, with the locks that guard it."""

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
from .user_index import NewVectors, UserIndex

T = TypeVar("T")


class Work(NamedTuple, Generic[T]):
    """A task for an index. ``is_quick`` marks one that takes about a millisecond."""

    do: Callable[[UserIndex], T]
    is_quick: bool = False


class KnownVectors(NamedTuple):
    """Vectors read from the store before a change is applied, and the embedder they came from."""

    by_text: Mapping[str, Vector]
    by: Embedder | None = None


class IndexSlot:
    """One user's index and its locks.

    ``nbytes`` is the size of the index after its last update, ``counted`` the part of it that the
    searcher has added to its total.
    """

    def __init__(self, make_index: Callable[[], UserIndex]) -> None:
        self._make_index = make_index
        self.index = make_index()
        self.counted = self.nbytes = 0
        self._loop_locks = PerLoop(asyncio.Lock)
        self._lock = threading.RLock()  # held by any thread that touches the index
        self._running: set[asyncio.Future[Any]] = set()  # a loop keeps only weak references

    async def serialized(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run work one caller at a time in this loop. Once started, it runs to the end."""
        lock = self._loop_locks.get()
        await lock.acquire()
        task = asyncio.ensure_future(work())
        self._running.add(task)
        task.add_done_callback(partial(self._release, lock))
        return await asyncio.shield(task)

    def _release(self, lock: asyncio.Lock, done: asyncio.Future[Any]) -> None:
        self._running.discard(done)
        lock.release()
        if not done.cancelled():
            done.exception()  # retrieved here: the caller may have been cancelled

    def take(self, index: UserIndex) -> None:
        """Use another index, such as one that was saved."""
        with self._lock:
            self.index = index
            self.nbytes = index.nbytes

    def locked(self, work: Callable[[UserIndex], T]) -> T:
        """Run work on the index while no other thread uses it."""
        with self._lock:
            return work(self.index)

    def update_and_run(
        self,
        seen: object,
        changes: Changes,
        now: float,
        do: Callable[[UserIndex], T],
        known: KnownVectors,
    ) -> tuple[T, NewVectors] | None:
        """Apply the changes since state ``seen``, then run ``do``.

        Return its result and the vectors made on the way. Return ``None`` if the index has left
        that state: another loop applied its changes first, and these may be older.
        """
        with self._lock:
            if self.index.state is not seen:
                return None
            try:
                self.index.apply(changes, known.by_text, known.by)
                self.index.expire(now)
            except BaseException:  # half applied: it must not be used
                self.index = self._make_index()
                raise
            done = do(self.index), self.index.take_made()
            self.nbytes = self.index.nbytes  # here: it may take a millisecond
            return done

    async def in_thread(self, work: Callable[[], T], *, unless_quick: bool) -> T:
        """Run work in a thread, or at once if it is quick and no other thread holds the index."""
        if unless_quick and self._lock.acquire(blocking=False):
            try:
                return work()
            finally:
                self._lock.release()
        return await asyncio.to_thread(work)
