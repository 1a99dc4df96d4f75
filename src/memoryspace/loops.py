"""Two things about event loops: what belongs to one of them, and what must not be cut short."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class PerLoop(Generic[T]):
    """Makes one thing, such as a lock, for each event loop that asks; forgets closed loops.

    A lock that was ever waited for holds on to its loop, so weak references would not do.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._things: dict[asyncio.AbstractEventLoop, T] = {}

    def get(self) -> T:
        """Return the running loop's thing."""
        loop = asyncio.get_running_loop()
        thing = self._things.get(loop)
        if thing is None:
            self._things = {each: old for each, old in self._things.items() if not each.is_closed()}
            thing = self._things[loop] = self._make()
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
