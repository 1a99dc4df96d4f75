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
from collections.abc import Callable
from contextlib import suppress

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


class _Tasks:
    """Tasks of one event loop that came in the same turn of it, and wait together."""

    __slots__ = ("futures", "loop", "lsn")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.lsn = 0
        self.futures: list[asyncio.Future[None]] = []

    def release(self, error: JournalUnavailable | None) -> None:
        """Wake them all with one call into their loop."""
        with suppress(RuntimeError):  # the loop was closed: nobody waits any more
            self.loop.call_soon_threadsafe(_resolve, self.futures, error)


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
        self._waiting: list[_Thread | _Tasks] = []
        self._syncing = False
        self._due: float | None = None
        self._chores: list[Callable[[], None]] = []
        self._aside: threading.Thread | None = None
        self._stopping = False
        self._thread: threading.Thread | None = None
        # Not guarded: each loop's entry is its own thread's alone.
        self._arriving: dict[asyncio.AbstractEventLoop, _Tasks] = {}

    def wait(self, lsn: int) -> None:
        """Return when ``lsn`` is durable; ``JournalUnavailable`` if the sync failed."""
        with self._changed:
            alone = not (self._syncing or self._waiting)
            if alone:
                self._syncing = True
            else:
                waiter = _Thread(lsn)
                self._waiting.append(waiter)
                self._wake()
        if alone:
            self._sync_here()
        else:
            waiter.wait()

    def future(self, lsn: int) -> asyncio.Future[None]:
        """``wait`` for a task of the running event loop: what it has to await."""
        loop = asyncio.get_running_loop()
        tasks = self._arriving.get(loop)
        if tasks is None:
            # All tasks that are ready now come before the flusher is woken: one sync serves them
            # all. Woken by the first, it would sync for that one alone.
            tasks = self._arriving[loop] = _Tasks(loop)
            loop.call_soon(self._enlist, loop)
        if lsn > tasks.lsn:
            tasks.lsn = lsn
        future = loop.create_future()
        tasks.futures.append(future)
        return future

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
        """Wait for something to do; None when there is nothing more to come."""
        while True:
            if not self._syncing and (self._waiting or self._is_due()):
                self._syncing, self._due = True, None
                return self._flush
            if self._stopping and not self._waiting:
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
