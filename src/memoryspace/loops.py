"""Event loops: what belongs to one of them, what must not be cut short, waiting from outside."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import cache
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class PerLoop(Generic[T]):
    """Makes one thing, such as a lock, for each event loop that asks; forgets closed loops.

    A lock that was ever waited for holds on to its loop, so weak references would not do.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._things: dict[asyncio.AbstractEventLoop, T] = {}
        self._lock = threading.Lock()  # two loops may ask at the same time, each in its thread

    def get(self) -> T:
        """Return the running loop's thing."""
        loop = asyncio.get_running_loop()
        thing = self._things.get(loop)
        if thing is None:
            with self._lock:
                things = {each: old for each, old in self._things.items() if not each.is_closed()}
                thing = things[loop] = self._make()
                self._things = things
        return thing

    def pop(self) -> T | None:
        """Return the running loop's thing and forget it; None if there is none."""
        with self._lock:
            things = dict(self._things)
            thing = things.pop(asyncio.get_running_loop(), None)
            self._things = things
        return thing


async def finish(work: Coroutine[Any, Any, T]) -> T:
    """Run ``work`` to its end even if the caller is cancelled, which it is afterwards."""
    task = asyncio.create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        with suppress(Exception):  # the cancellation is what the caller must see
            await task
        raise


def wait_for(work: Coroutine[Any, Any, T]) -> T:
    """Run ``work`` on a loop in a thread of its own, and wait for it; never called from that loop.

    All work of the process shares that loop, which lives as long as the process: clients that keep
    connections are never moved from one loop to another.
    """
    return asyncio.run_coroutine_threadsafe(work, _own_loop()).result()


@cache
def _own_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="memoryspace-models", daemon=True).start()
    return loop
