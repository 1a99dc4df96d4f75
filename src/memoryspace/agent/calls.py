"""A call of an agent, and the user's interrupt, told from everybody else's cancellation.

Both reach a coroutine as ``CancelledError``. The interrupt is counted: it cancels the task once and
takes that one back (``Task.uncancel``). If a cancellation is left then, it is somebody else's: a
timeout's, a task group's, the server's that shuts down. It goes on its way.

A call exists before its task has taken its first step. An interrupt that comes then is kept, and
the reply is not begun.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from ..message import new_id

T = TypeVar("T")


class Call:
    """One call, from when it was made until its reply is there; ``task`` is None until it runs."""

    def __init__(self) -> None:
        self.id = new_id()
        self.task: asyncio.Task[Any] | None = None
        self._cancelled_before = 0
        self._unwanted = False  # interrupted at any time, even before it began
        self._interrupted = False  # its task was cancelled for that
        self._over = False
        self._waiting: list[asyncio.Future[None]] = []

    async def run(
        self, reply: Callable[[], Awaitable[T]], handle_interrupt: Callable[[], Awaitable[T]]
    ) -> T:
        """Return the reply or, if the user interrupts it, what the handler says instead."""
        self._begin()
        if self._unwanted:
            self._over = True
            return await handle_interrupt()
        try:
            said = await reply()
        except asyncio.CancelledError:
            if not self._is_mine():
                raise
        except Exception:
            await self._arrived()
            raise
        else:
            if not await self._arrived():
                return said
        return await handle_interrupt()

    def interrupt(self, msg: Any = None) -> None:
        """Cancel the call for the user; from another thread, too. Once is enough.

        Here the wish comes first and then the look at the task; where the call begins, the task
        comes first. So whichever thread is ahead, at least one of them sees the other.
        """
        self._unwanted = True
        if self.task is None:
            return
        loop = self.task.get_loop()
        if _running_loop() is loop:
            self._interrupt(msg)
        else:
            loop.call_soon_threadsafe(self._interrupt, msg)

    def end(self) -> None:
        """Let those who wait for the end go on."""
        self._over = True
        for each in self._waiting:
            if not each.done():
                each.set_result(None)

    async def ended(self) -> None:
        """Wait until the call is over. Only in its own loop."""
        if not self._over:
            waiting = asyncio.get_running_loop().create_future()
            self._waiting.append(waiting)
            await waiting

    def _begin(self) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("an agent must be called from a task of an event loop")
        self._cancelled_before = task.cancelling()
        self.task = task

    def _interrupt(self, msg: Any) -> None:
        if self.task is not None and not self._interrupted and not self._over:
            self._interrupted = True
            self.task.cancel(msg)

    def _is_mine(self) -> bool:
        """Take the interrupt's cancellation back, and tell whether it was the only one."""
        self._over = True
        return self._interrupted and self._take_back() <= self._cancelled_before

    def _take_back(self) -> int:
        """Uncancel the task once; return how many cancellations are left."""
        return self.task.uncancel() if self.task is not None else 0

    async def _arrived(self) -> bool:
        """Let an interrupt that came after the last await arrive here, not at the caller's next.

        If it does not come, the reply itself has caught it and decided what to say.
        """
        self._over = True
        if not self._interrupted:
            return False
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            if not self._is_mine():
                raise
            return True
        self._take_back()
        return False


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
