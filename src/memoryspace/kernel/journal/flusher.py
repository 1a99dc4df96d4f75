"""Group commit: everybody who waits for the disk at the same moment shares one sync.

A caller who is alone syncs in his own thread, since waking another one costs more than the sync
may. As soon as a second one comes, a background thread syncs for all that wait. (If the first
waiter did it instead, the others would each wake, find themselves not covered and sync again.)
The same thread keeps the promise of ``group(ms)``, and starts what has to be done aside: starting a
thread can take as long as a sync, so no writer does it.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress

from msgspec import Struct

from .damage import JournalUnavailable

_RETRY_SECONDS = 1.0  # after a failed sync that nobody waits for


class _Thread:
    """A thread that waits: it holds a lock twice, and is let go by releasing it."""

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


class _Task(Struct, eq=False):
    """A task of an event loop that waits."""

    lsn: int
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[None]


class Flusher:
    """Calls ``sync`` for those who wait; ``durable`` tells up to where the log is safe."""

    def __init__(
        self,
        sync: Callable[[], None],
        durable: Callable[[], int],
        *,
        interval: float | None = None,
    ) -> None:
        self._sync, self._durable, self._interval = sync, durable, interval
        # Guards all below. Taken after the writer's lock or without it, never before.
        self._changed = threading.Condition(threading.Lock())
        self._threads: list[_Thread] = []
        self._tasks: list[_Task] = []
        self._arriving: dict[asyncio.AbstractEventLoop, list[_Task]] = {}
        self._syncing = False
        self._due: float | None = None
        self._chores: list[Callable[[], None]] = []
        self._aside: threading.Thread | None = None
        self._stopping = False
        self._thread: threading.Thread | None = None

    def wait(self, lsn: int) -> None:
        """Return when ``lsn`` is durable; ``JournalUnavailable`` if the sync failed."""
        with self._changed:
            alone = not (self._syncing or self._threads or self._tasks)
            if alone:
                self._syncing = True
            else:
                waiter = _Thread(lsn)
                self._threads.append(waiter)
                self._wake()
        if alone:
            self._sync_here()
        else:
            waiter.wait()

    async def wait_async(self, lsn: int) -> None:
        """``wait``, without blocking the event loop."""
        loop = asyncio.get_running_loop()
        task = _Task(lsn, loop, loop.create_future())
        with self._changed:
            arriving = self._arriving.get(loop)
            if arriving is None:
                # All tasks that are ready now come before the flusher is woken: one sync serves
                # them all. Woken by the first, it would sync for that one alone.
                self._arriving[loop] = [task]
                loop.call_soon(self._enlist, loop)
            else:
                arriving.append(task)
        await task.future

    def sync_soon(self) -> None:
        """Under ``group``: something was appended that must be durable within the interval."""
        with self._changed:
            if self._due is None and self._interval is not None:
                self._due = time.monotonic() + self._interval
                self._wake()

    def run_aside(self, chore: Callable[[], None]) -> None:
        """Run something long in a thread of its own, one such thing after the other."""
        with self._changed:
            if not self._stopping:
                self._chores.append(chore)
                self._wake()

    def stop(self) -> None:
        """End the threads, after they have served those who wait and finished what they began."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join()
        if self._aside is not None:
            self._aside.join()

    def _enlist(self, loop: asyncio.AbstractEventLoop) -> None:
        durable = self._durable()
        with self._changed:
            arrived = self._arriving.pop(loop)
            waiting = [task for task in arrived if task.lsn > durable]
            self._tasks += waiting
            if waiting:
                self._wake()
        _resolve([task.future for task in arrived if task.lsn <= durable], None)

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
        finally:  # also when a signal comes: those who wait go by what is durable
            self._let_go(error)
        if error is not None:
            raise error

    def _try_sync(self) -> JournalUnavailable | None:
        try:
            self._sync()
        except JournalUnavailable as error:
            return error
        except Exception as error:  # whoever waits must hear of it, whatever it is
            failure = JournalUnavailable(f"the journal could not sync: {error!r}")
            failure.__cause__ = error
            return failure
        return None

    def _let_go(self, error: JournalUnavailable | None) -> None:
        """After a sync: release all it covered, or all that waited if it failed."""
        durable = self._durable()
        with self._changed:
            self._syncing = False
            covered = [each for each in self._threads if error or each.lsn <= durable]
            finished = [each for each in self._tasks if error or each.lsn <= durable]
            self._threads = [each for each in self._threads if not (error or each.lsn <= durable)]
            self._tasks = [each for each in self._tasks if not (error or each.lsn <= durable)]
            if error is not None and self._interval is not None and self._due is None:
                self._due = time.monotonic() + max(self._interval, _RETRY_SECONDS)
            if self._thread is not None and (self._threads or self._tasks or self._due):
                self._changed.notify()
        for waiter in covered:
            waiter.release(error)
        _resolve_tasks(finished, error)

    def _run(self) -> None:
        while True:
            with self._changed:
                job = self._next_job()
            if job is None:
                return
            job()

    def _next_job(self) -> Callable[[], None] | None:
        """Wait for something to do; None when there is nothing more to come."""
        while True:
            if not self._syncing and (self._threads or self._tasks or self._is_due()):
                self._syncing, self._due = True, None
                return self._flush
            if self._stopping and not (self._threads or self._tasks):
                self._thread = None  # whoever comes later still finds one
                return None
            if self._chores and not self._stopping:
                return self._start_chore
            self._changed.wait(self._patience())

    def _is_due(self) -> bool:
        return self._due is not None and self._due <= time.monotonic()

    def _patience(self) -> float | None:
        if self._due is None or self._syncing:
            return None
        return max(0.0, self._due - time.monotonic())

    def _flush(self) -> None:
        self._let_go(self._try_sync())

    def _start_chore(self) -> None:
        before, chore = self._aside, self._chores.pop(0)
        self._aside = threading.Thread(
            target=_in_turn, args=(before, chore), name="memoryspace-journal-aside", daemon=True
        )
        self._aside.start()


def _in_turn(before: threading.Thread | None, chore: Callable[[], None]) -> None:
    if before is not None:
        before.join()
    chore()


def _resolve_tasks(tasks: list[_Task], error: JournalUnavailable | None) -> None:
    """Wake the tasks with one call into each event loop."""
    by_loop: defaultdict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = defaultdict(list)
    for task in tasks:
        by_loop[task.loop].append(task.future)
    for loop, futures in by_loop.items():
        with suppress(RuntimeError):  # the loop was closed: nobody waits any more
            loop.call_soon_threadsafe(_resolve, futures, error)


def _resolve(futures: list[asyncio.Future[None]], error: JournalUnavailable | None) -> None:
    for future in futures:
        if future.done():  # cancelled meanwhile
            continue
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(_again(error))


def _again(error: JournalUnavailable) -> JournalUnavailable:
    """The same error for another waiter: each gets a traceback of its own."""
    copy = JournalUnavailable(*error.args)
    copy.__cause__ = error
    return copy
