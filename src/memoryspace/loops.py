"""Event loop tools: per-loop objects, uncancellable work, waiting from synchronous code."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class PerLoop(Generic[T]):
    """One instance of an object, such as a lock, per event loop. Closed loops are dropped.

    A lock that was ever awaited keeps a reference to its loop, so weak references do not help.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._by_loop: dict[asyncio.AbstractEventLoop, T] = {}
        self._lock = threading.Lock()  # loops in different threads may call at the same time

    def get(self) -> T:
        """Return the running loop's instance; make it on the first call."""
        loop = asyncio.get_running_loop()
        instance = self._by_loop.get(loop)
        if instance is None:
            with self._lock:
                by_loop = {each: old for each, old in self._by_loop.items() if not each.is_closed()}
                instance = by_loop[loop] = self._make()
                self._by_loop = by_loop
        return instance

    def pop(self) -> T | None:
        """Remove and return the running loop's instance; None if there is none."""
        with self._lock:
            by_loop = dict(self._by_loop)
            instance = by_loop.pop(asyncio.get_running_loop(), None)
            self._by_loop = by_loop
        return instance


async def finish(work: Coroutine[Any, Any, T]) -> T:
    """Run ``work`` to completion even if the caller is cancelled; then raise the cancellation."""
    task = asyncio.create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        with suppress(Exception):  # the cancellation is what the caller must see
            await task
        raise


@contextmanager
def heeding_cancellation() -> Iterator[None]:
    """Raise ``CancelledError`` at the end if the task was cancelled inside and it got lost.

    ``asyncio.wait_for``, which clients use, loses it before Python 3.12 if what it waits for ends
    in the same moment. The task would then go on.
    """
    task = asyncio.current_task()
    before = 0 if task is None else task.cancelling()
    yield
    if task is not None and task.cancelling() > before:
        raise asyncio.CancelledError


def wait_for(work: Coroutine[Any, Any, T], *, timeout: float | None = None) -> T:
    """Run ``work`` on a background event loop and block until it is done.

    The whole process shares one background loop, which lives as long as the process, so clients
    that keep connections never move from one loop to another. If the caller is interrupted, or
    ``timeout`` seconds pass, the work is cancelled.

    Raises:
        RuntimeError: This is called on that loop, where it would wait for itself.
    """
    loop = _own_loop()
    if asyncio._get_running_loop() is loop:
        work.close()
        raise RuntimeError(
            "a synchronous call on the event loop that serves it would never return; "
            "await the asynchronous form here"
        )
    begun = asyncio.run_coroutine_threadsafe(work, loop)
    try:
        return begun.result(timeout)
    except BaseException:
        begun.cancel()
        raise


@cache
def _own_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="memoryspace-loop", daemon=True).start()
    return loop


if hasattr(os, "register_at_fork"):  # a child has no thread that runs the loop
    os.register_at_fork(after_in_child=_own_loop.cache_clear)
