"""``Desk``: runs the work of a space for an event loop, at once or in a thread of its own.

Quick work is done at once: handing it to a thread would take longer. Work that would wait for the
disk or for the lock, or takes long, runs in one thread, in the order of the calls; later calls wait
behind it. While that thread works, Python's switch interval is lowered: otherwise the loop would
wait up to 5 ms for each turn.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import copy_context
from functools import partial
from typing import Generic, NamedTuple, TypeVar

from .heap.lower_tier import WouldWait
from .manager import MemoryManager

T = TypeVar("T")
M = TypeVar("M", bound=MemoryManager)

TURN = 0.0005  # seconds that a thread at work keeps the interpreter while others want it


class _Change(NamedTuple, Generic[T]):
    """What came of a change, its last number (0 if there was none), and if upkeep is due."""

    result: T
    space: MemoryManager
    lsn: int
    is_due: bool


class Desk:
    """One thread, begun when it is first needed, and how much waits for it."""

    def __init__(self, name: str = "memoryspace-desk") -> None:
        self._name = name
        self._pool: ThreadPoolExecutor | None = None
        self._waiting = 0
        self._lock = threading.Lock()  # around these two

    @property
    def is_busy(self) -> bool:
        """If something is done in the thread, or waits for it."""
        return self._waiting > 0

    async def do(self, space: M | None, opened: Callable[[], M], work: Callable[[M], T]) -> T:
        """Do some work under the lock of a space, which is ``opened`` first if need be."""
        if space is not None and not self._waiting and space.engine.writing.acquire(0):
            try:
                return space.engine.at_once(partial(work, space))
            except WouldWait:
                pass
            finally:
                space.engine.writing.release()
        return await self.aside(partial(_locked, opened, work))

    async def change(self, space: M | None, opened: Callable[[], M], work: Callable[[M], T]) -> T:
        """``do`` something that changes a space, with the upkeep; return when it is safe."""
        done = None if space is None else self._change_at_once(space, work)
        if done is None:
            done = await self.aside(partial(_changed, opened, work))
        if done.is_due:
            await self.aside(partial(_look_after, done.space))
        if done.lsn:
            await done.space.engine.wait_for_async(done.lsn)
        return done.result

    def _change_at_once(self, space: M, work: Callable[[M], T]) -> _Change[T] | None:
        engine = space.engine
        if self._waiting or not engine.writing.acquire(0):
            return None
        try:
            before = engine.last_lsn
            result = engine.at_once(partial(work, space))
            lsn, is_due = engine.last_lsn, engine.needs_time()
            if not is_due:
                engine.do_upkeep()
            return _Change(result, space, lsn if lsn != before else 0, is_due)
        except WouldWait:
            return None
        finally:
            engine.writing.release()

    async def aside(self, work: Callable[[], T]) -> T:
        """Do some work in the thread. Once begun it is done to the end, also for a caller who is
        cancelled: what that one does next comes after it."""
        begun = self._begin(partial(copy_context().run, work))
        waiting = asyncio.wrap_future(begun)
        try:
            return await asyncio.shield(waiting)
        except asyncio.CancelledError:
            if not begun.cancel():
                with suppress(Exception):  # the cancellation is what the caller must see
                    await waiting
            raise

    def rest(self) -> None:
        """Let the thread go if nothing waits for it; the next work begins another."""
        with self._lock:
            pool = None if self._waiting else self._pool
            self._pool = self._pool if self._waiting else None
        if pool is not None:
            pool.shutdown()  # it has nothing to do: this takes no time

    def _begin(self, work: Callable[[], T]) -> Future[T]:
        work = partial(self._work, work)
        try:
            begun = self._thread().submit(work)
        except RuntimeError:  # the interpreter ends, and has no more threads to give
            begun = _done_here(work)
        begun.add_done_callback(self._left)
        return begun

    def _thread(self) -> ThreadPoolExecutor:
        with self._lock:
            self._waiting += 1
            if self._pool is None:
                self._pool = ThreadPoolExecutor(1, thread_name_prefix=self._name)
            return self._pool

    def _work(self, work: Callable[[], T]) -> T:
        """Work is no longer waited for before its caller hears of it, who may come again."""
        try:
            with _short_turns():
                return work()
        finally:
            self._count_down()

    def _left(self, begun: Future[T]) -> None:
        if begun.cancelled():  # else it was counted when it was done
            self._count_down()

    def _count_down(self) -> None:
        with self._lock:
            self._waiting -= 1


def _locked(opened: Callable[[], M], work: Callable[[M], T]) -> T:
    space = opened()
    with space.engine.writing:
        return work(space)


def _changed(opened: Callable[[], M], work: Callable[[M], T]) -> _Change[T]:
    space = opened()
    engine = space.engine
    with engine.writing:
        before = engine.last_lsn
        result, lsn = work(space), engine.last_lsn
        engine.do_upkeep()
    return _Change(result, space, lsn if lsn != before else 0, is_due=False)


def _look_after(space: MemoryManager) -> None:
    engine = space.engine
    with engine.writing:
        if not engine.is_closed:
            engine.do_upkeep()


def _done_here(work: Callable[[], T]) -> Future[T]:
    done: Future[T] = Future()
    try:
        done.set_result(work())
    except Exception as error:
        done.set_exception(error)
    return done


class _Turns:
    """Counts the threads at work: the first shortens the turns, the last lets them be as before."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._before = self._ours = 0.0

    def begin(self) -> None:
        with self._lock:
            self._count += 1
            if self._count == 1:
                self._before = sys.getswitchinterval()
                sys.setswitchinterval(min(TURN, self._before))
                self._ours = sys.getswitchinterval()  # as it was rounded

    def end(self) -> None:
        with self._lock:
            self._count -= 1
            if self._count == 0 and sys.getswitchinterval() == self._ours:  # else another's wish
                sys.setswitchinterval(self._before)


_turns = _Turns()


@contextmanager
def _short_turns() -> Iterator[None]:
    _turns.begin()
    try:
        yield
    finally:
        _turns.end()
