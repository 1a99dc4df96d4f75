"""Group commit for the journal: callers that wait for the disk at the same time share one sync.

A single caller syncs in its own thread, since waking another one may cost more than the sync. As
soon as a second caller arrives, a background thread syncs for all that wait. (If the first caller
did it instead, the others would each wake, find themselves not covered and sync again.) The same
thread syncs for ``group(ms)`` and starts background jobs: starting a thread can take as long as a
sync, so writers never do it.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from .damage import JournalUnavailable

_RETRY_SECONDS = 1.0  # after a failed sync that no caller waits for


class _WaitingThread:
    """A waiting thread. It acquires a lock twice and is woken by releasing it."""

    __slots__ = ("_gate", "error", "lsn")

    def __init__(self, lsn: int) -> None:
        self.lsn = lsn
        self.error: JournalUnavailable | None = None
        self._gate = threading.Lock()
        self._gate.acquire()

    def wait(self) -> None:
        self._gate.acquire()
        if self.error is not None:
            raise _again(self.error)

    def release(self, error: JournalUnavailable | None) -> None:
        self.error = error
        self._gate.release()


class _WaitingTasks:
    """Tasks of one event loop that arrived in the same iteration and wait together."""

    __slots__ = ("futures", "loop", "lsn")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.lsn = 0
        self.futures: list[asyncio.Future[None]] = []

    def release(self, error: JournalUnavailable | None) -> None:
        """Wake all tasks with one call into their loop."""
        with suppress(RuntimeError):  # the loop was closed: no task waits any more
            self.loop.call_soon_threadsafe(_resolve, self.futures, error)


class Flusher:
    """Calls ``sync`` for waiting callers; ``durable`` returns the last durable lsn."""

    def __init__(
        self,
        sync: Callable[[], None],
        durable: Callable[[], int],
        *,
        interval: float | None = None,
    ) -> None:
        self._sync, self._durable, self._interval = sync, durable, interval
        # Guards everything below. Taken after the writer's lock or without it, never before.
        self._changed = threading.Condition(threading.Lock())
        self._waiting: list[_WaitingThread | _WaitingTasks] = []
        self._syncing = False
        self._due: float | None = None
        self._jobs: list[Callable[[], None]] = []
        self._background: threading.Thread | None = None
        self._stopping = False
        self._thread: threading.Thread | None = None
        # Not guarded: only the loop's own thread uses its entry.
        self._arriving: dict[asyncio.AbstractEventLoop, _WaitingTasks] = {}

    def wait(self, lsn: int) -> None:
        """Return when ``lsn`` is durable; ``JournalUnavailable`` if the sync failed."""
        with self._changed:
            alone = not (self._syncing or self._waiting)
            if alone:
                self._syncing = True
            else:
                waiter = _WaitingThread(lsn)
                self._waiting.append(waiter)
                self._wake()
        if alone:
            self._sync_here()
        else:
            waiter.wait()

    def future(self, lsn: int) -> asyncio.Future[None]:
        """Return a future that resolves when ``lsn`` is durable, for the running event loop."""
        loop = asyncio.get_running_loop()
        tasks = self._arriving.get(loop)
        if tasks is None:
            # All tasks that are ready now arrive before the flusher wakes, so one sync serves them
            # all. Woken by the first task, it would sync for that one only.
            tasks = self._arriving[loop] = _WaitingTasks(loop)
            loop.call_soon(self._enlist, loop)
        if lsn > tasks.lsn:
            tasks.lsn = lsn
        future = loop.create_future()
        tasks.futures.append(future)
        return future

    def sync_soon(self) -> None:
        """Schedule a sync within the interval of ``group``."""
        with self._changed:
            if self._due is None and self._interval is not None:
                self._due = time.monotonic() + self._interval
                self._wake()

    def run_in_background(self, job: Callable[[], None]) -> None:
        """Run a long job in a background thread, one job at a time."""
        with self._changed:
            if not self._stopping:
                self._jobs.append(job)
                self._wake()

    def stop(self) -> None:
        """Stop the threads after they have served all waiting callers and finished their jobs."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join()
        if self._background is not None:
            self._background.join()

    def _enlist(self, loop: asyncio.AbstractEventLoop) -> None:
        tasks = self._arriving.pop(loop)
        if tasks.lsn <= self._durable():
            _resolve(tasks.futures, None)
            return
        with self._changed:
            self._waiting.append(tasks)
            self._wake()

    def _wake(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, name="memoryspace-journal", daemon=True
            )
            self._thread.start()
        else:
            self._changed.notify()

    def _sync_here(self) -> None:
        error: JournalUnavailable | None = None
        try:
            error = self._try_sync()
        finally:  # also after a signal: waiters are released by what is durable
            self._release_waiters(error)
        if error is not None:
            raise error

    def _try_sync(self) -> JournalUnavailable | None:
        try:
            self._sync()
        except JournalUnavailable as error:
            return error
        except Exception as error:  # waiters must learn of it, whatever it is
            failure = JournalUnavailable(f"the journal could not sync: {error!r}")
            failure.__cause__ = error
            return failure
        return None

    def _release_waiters(self, error: JournalUnavailable | None) -> None:
        """Release the waiters that a sync covered, or all of them if it failed."""
        durable = self._durable()
        with self._changed:
            self._syncing = False
            released = [each for each in self._waiting if error or each.lsn <= durable]
            self._waiting = [each for each in self._waiting if not (error or each.lsn <= durable)]
            if error is not None and self._interval is not None and self._due is None:
                self._due = time.monotonic() + max(self._interval, _RETRY_SECONDS)
            if self._thread is not None and (self._waiting or self._due):
                self._changed.notify()
        for each in released:
            each.release(error)

    def _run(self) -> None:
        while True:
            with self._changed:
                job = self._next_job()
            if job is None:
                return
            job()

    def _next_job(self) -> Callable[[], None] | None:
        """Wait for the next job and return it; ``None`` when stopped."""
        while True:
            if not self._syncing and (self._waiting or self._is_due()):
                self._syncing, self._due = True, None
                return self._flush
            if self._stopping and not self._waiting:
                self._thread = None  # a later caller starts another one
                return None
            if self._jobs and not self._stopping:
                return self._start_job
            self._changed.wait(self._seconds_until_due())

    def _is_due(self) -> bool:
        return self._due is not None and self._due <= time.monotonic()

    def _seconds_until_due(self) -> float | None:
        if self._due is None or self._syncing:
            return None
        return max(0.0, self._due - time.monotonic())

    def _flush(self) -> None:
        self._release_waiters(self._try_sync())

    def _start_job(self) -> None:
        before, job = self._background, self._jobs.pop(0)
        self._background = threading.Thread(
            target=_in_turn, args=(before, job), name="memoryspace-journal-aside", daemon=True
        )
        self._background.start()


def _in_turn(before: threading.Thread | None, job: Callable[[], None]) -> None:
    if before is not None:
        before.join()
    job()


def _resolve(futures: list[asyncio.Future[None]], error: JournalUnavailable | None) -> None:
    for future in futures:
        if future.done():  # cancelled meanwhile
            continue
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(_again(error))


def _again(error: JournalUnavailable) -> JournalUnavailable:
    """Return a copy of an error, so that each waiter gets its own traceback."""
    copy = JournalUnavailable(*error.args)
    copy.__cause__ = error
    return copy
