"""Locks of a space: ``ReadWriteLock`` for many readers or one writer, and ``YieldingLock``.

Neither side of a ``ReadWriteLock`` starves: a waiting writer stops new readers, and the readers
that arrived meanwhile go before the next writer. Both sides are re-entrant. Upgrading a read lock
to a write lock cannot work and raises an error instead of deadlocking.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from threading import get_ident
from types import TracebackType
from typing import Protocol, Self


class ReadWriteLock:
    """A lock for many readers or one writer: ``with lock.read: ...``, ``with lock.write: ...``.

    Both sides may also be called (``with lock.read(): ...``), and have ``acquire(timeout=...)``
    and ``release()``. A lock belongs to the thread that acquired it.

    Examples:
        >>> lock = ReadWriteLock()
        >>> with lock.read:
        ...     pass
    """

    def __init__(self) -> None:
        # Guards everything below; never held while waiting. Releasing the lock hands it over: a
        # waiter that wakes up is already registered as a holder, so no thread can overtake it.
        self._mutex = threading.Lock()
        self._readers: dict[int, int] = {}  # thread → how many times it entered
        self._writer: int | None = None
        self._depth = 0  # how many times the writer entered
        self._waiting_readers: deque[_Waiter] = deque()
        self._waiting_writers: deque[_Waiter] = deque()
        self.read = ReadSide(self)
        self.write = WriteSide(self)

    @property
    def waiting(self) -> tuple[int, int]:
        """How many readers and how many writers are waiting."""
        return len(self._waiting_readers), len(self._waiting_writers)

    def __repr__(self) -> str:
        writing = "" if self._writer is None else f" writer={self._writer}"
        return f"<ReadWriteLock readers={len(self._readers)}{writing} waiting={self.waiting}>"

    def check(self) -> None:
        """Verify the invariants. Meant for tests, while no thread is entering."""
        with self._mutex:
            others = self._readers.keys() - {self._writer}
            assert self._writer is None or not others, "a writer beside readers"
            assert (self._depth > 0) == (self._writer is not None), "a writer without depth"
            assert all(entered > 0 for entered in self._readers.values()), "a reader that left"
            free = self._writer is None and not self._readers
            waiting = self._waiting_readers or self._waiting_writers
            assert not (free and waiting), "a thread waits for a free lock"

    def _admit_readers(self) -> None:
        while self._waiting_readers:
            waiter = self._waiting_readers.popleft()
            self._readers[waiter.thread] = 1
            waiter.admit()

    def _admit_writer(self) -> None:
        # It is the writer before it leaves the queue: the lock never looks open in between.
        waiter = self._waiting_writers[0]
        self._writer, self._depth = waiter.thread, 1
        self._waiting_writers.popleft()
        waiter.admit()

    def _after_giving_up(self) -> None:
        """Admit the threads that a waiter held up before it left its queue."""
        if not self._waiting_writers:
            self._admit_readers()
        elif not self._readers:
            self._admit_writer()

    def _after_writer(self) -> None:
        """Admit the readers that waited for a writer, or else the next writer."""
        if self._waiting_readers:
            self._admit_readers()
        elif self._waiting_writers and not self._readers:  # it may have kept a read lock
            self._admit_writer()


class _Waiter:
    """A thread in a queue, asleep on a lock of its own until it is admitted."""

    __slots__ = ("_asleep", "admitted", "thread")

    def __init__(self) -> None:
        self.thread = get_ident()
        self.admitted = False
        self._asleep = threading.Lock()
        self._asleep.acquire()

    def admit(self) -> None:
        self.admitted = True
        self._asleep.release()

    def sleep(self, timeout: float) -> None:
        self._asleep.acquire(timeout=timeout)


class _Side:
    """The common part of both sides: waiting in a queue, and leaving it."""

    __slots__ = ("_lock", "_queue")

    def __init__(self, lock: ReadWriteLock, queue: deque[_Waiter]) -> None:
        self._lock = lock
        self._queue = queue

    def __call__(self) -> Self:
        return self

    def release(self) -> None:
        """Release the lock once; ``RuntimeError`` if this thread does not hold it."""
        raise NotImplementedError

    def _wait(self, waiter: _Waiter, timeout: float) -> bool:
        """Sleep until admitted and return whether that happened. Leave the queue otherwise."""
        try:
            waiter.sleep(timeout)
        except BaseException:
            if not self._leave_queue(waiter):
                self.release()
            raise
        return waiter.admitted or not self._leave_queue(waiter)

    def _leave_queue(self, waiter: _Waiter) -> bool:
        """Stop waiting; return ``False`` if the waiter was admitted first."""
        lock = self._lock
        with lock._mutex:
            if waiter.admitted:
                return False
            self._queue.remove(waiter)
            if lock._writer is None:
                lock._after_giving_up()
            return True


class ReadSide(_Side):
    """The read side. Without contention it is entered and left without the mutex.

    A reader registers itself, then checks for a writer; a writer closes the lock, then checks for
    readers. Whatever the order of these four steps, at least one thread sees the other and goes on
    under the mutex. This relies on setting and deleting an item of a dict being atomic.
    """

    __slots__ = ("_readers",)

    def __init__(self, lock: ReadWriteLock) -> None:
        super().__init__(lock, lock._waiting_readers)
        self._readers = lock._readers

    def acquire(self, timeout: float | None = None) -> bool:
        """Acquire the lock, waiting at most ``timeout`` seconds; return whether that worked."""
        me = get_ident()
        readers = self._readers
        if me in readers:  # re-entry, even while a writer waits: it waits for us
            readers[me] += 1
            return True
        readers[me] = 1
        lock = self._lock
        if lock._writer is None and not lock._waiting_writers:
            return True
        return self._enter_closed(me, timeout)

    def release(self) -> None:
        """Release the lock once; ``RuntimeError`` if this thread does not hold it."""
        self.__exit__(None, None, None)

    # The with statement is the hot path: the first entry is repeated here, to save a call.
    def __enter__(self) -> None:
        me = get_ident()
        readers = self._readers
        if me in readers:
            readers[me] += 1
            return
        readers[me] = 1
        lock = self._lock
        if lock._writer is not None or lock._waiting_writers:
            self._enter_closed(me, None)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        me = get_ident()
        readers = self._readers
        entered = readers.get(me)
        if entered != 1:
            return self._leave_one_of(entered)
        del readers[me]
        lock = self._lock
        if lock._writer is not None or lock._waiting_writers:
            self._let_a_writer_in()
        return None

    def _enter_closed(self, me: int, timeout: float | None) -> bool:
        """Enter if the lock is open by now, or ours; otherwise withdraw and wait."""
        lock = self._lock
        with lock._mutex:
            if lock._writer == me or (lock._writer is None and not lock._waiting_writers):
                return True
            del self._readers[me]
            waiter = _Waiter()
            self._queue.append(waiter)
            if lock._writer is None and not self._readers:  # the writer waited for us alone
                lock._admit_writer()
        return self._wait(waiter, _seconds(timeout))

    def _leave_one_of(self, entered: int | None) -> None:
        if entered is None:
            raise RuntimeError("this thread holds no read lock to release")
        self._readers[get_ident()] = entered - 1

    def _let_a_writer_in(self) -> None:
        lock = self._lock
        with lock._mutex:
            if lock._writer is None and lock._waiting_writers and not self._readers:
                lock._admit_writer()


class WriteSide(_Side):
    """The write side."""

    __slots__ = ("_mutex",)

    def __init__(self, lock: ReadWriteLock) -> None:
        super().__init__(lock, lock._waiting_writers)
        self._mutex = lock._mutex

    def acquire(self, timeout: float | None = None) -> bool:
        """Acquire the lock, waiting at most ``timeout`` seconds; return whether that worked."""
        me = get_ident()
        self._mutex.acquire()  # a with statement costs twice as much here
        try:
            if self._enter(me):
                return True
            waiter = _Waiter()
            self._queue.append(waiter)  # first: a reader that leaves must see the waiter
            if self._lock._writer == me:
                self._lock._writer, self._lock._depth = None, 0
        finally:
            self._mutex.release()
        return self._wait(waiter, _seconds(timeout))

    def release(self) -> None:
        """Release the lock once; ``RuntimeError`` if this thread does not hold it."""
        self.__exit__(None, None, None)

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        lock = self._lock
        self._mutex.acquire()
        try:
            if lock._writer != get_ident():
                raise RuntimeError("this thread holds no write lock to release")
            lock._depth -= 1
            if lock._depth == 0:
                lock._writer = None
                if lock._waiting_readers or self._queue:
                    lock._after_writer()
        finally:
            self._mutex.release()

    def _enter(self, me: int) -> bool:
        """Enter if the lock is free. If readers hold it, close it to new ones."""
        lock = self._lock
        if lock._writer is not None:
            if lock._writer != me:
                return False
            lock._depth += 1
            return True
        if me in lock._readers:
            raise RuntimeError(
                "this thread holds the read lock and would wait for itself; release it first, or "
                "acquire the write lock from the start"
            )
        lock._writer, lock._depth = me, 1
        return not lock._readers


def _seconds(timeout: float | None) -> float:
    """Return a timeout as ``threading.Lock`` takes it: -1 for none."""
    return -1 if timeout is None else max(0.0, timeout)


class Side(Protocol):
    """A lock as a space uses it: by ``with``, or, by whoever cannot wait, with a timeout."""

    def acquire(self, timeout: float | None = None) -> bool:
        """Enter, waiting at most ``timeout`` seconds; tell whether it worked."""
        ...

    def release(self) -> None:
        """Leave once."""
        ...

    def __enter__(self) -> None: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...


class YieldingLock:
    """A re-entrant lock for critical sections of microseconds, for use in ``with``.

    A thread that finds it taken first yields a few times. If it slept at once, every release would
    hand the lock over and cost a thread switch: eight threads got less than half of the work of
    one done. Threads that wait for the disk after every call lose a little by yielding.
    """

    __slots__ = ("_acquire", "_release")

    TRIES = 5

    def __init__(self) -> None:
        lock = threading.RLock()
        self._acquire = lock.acquire
        self._release = lock.release

    def __enter__(self) -> None:
        if not self._acquire(False):
            self._wait()

    def __exit__(self, *error: object) -> None:
        self._release()

    def acquire(self, timeout: float | None = None) -> bool:
        """Enter, waiting at most ``timeout`` seconds; tell whether it worked."""
        if timeout == 0:
            return self._acquire(False)
        return self._acquire(timeout=_seconds(timeout))

    def release(self) -> None:
        """Leave once."""
        self._release()

    def _wait(self) -> None:
        for _ in range(self.TRIES):
            time.sleep(0)
            if self._acquire(False):
                return
        self._acquire()
