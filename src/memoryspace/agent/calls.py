"""One call of an agent, which separates the user's interrupt from any other cancellation.

Both reach a coroutine as ``CancelledError``. The interrupt cancels the task once and reverts that
cancellation (``Task.uncancel``). A cancellation that remains is not ours: it comes from a timeout,
a task group or a server that shuts down, and is raised.

A call exists before its task runs. An interrupt in that time is remembered, and the reply is never
started.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from ..message import new_id

T = TypeVar("T")


class AgentCall:
    """One call, until its reply is complete. ``task`` is None until the call runs."""

    def __init__(self) -> None:
        self.id = new_id()
        self.task: asyncio.Task[Any] | None = None
        self._cancelled_before = 0
        self._interrupt_requested = False  # at any time, even before the call runs
        self._interrupted = False  # the task was cancelled because of it
        self._over = False
        self._waiting: list[asyncio.Future[None]] = []

    async def run(
        self, reply: Callable[[], Awaitable[T]], handle_interrupt: Callable[[], Awaitable[T]]
    ) -> T:
        """Return the reply or, if the user interrupts it, the result of the handler."""
        self._begin()
        if self._interrupt_requested:
            self._over = True
            return await handle_interrupt()
        try:
            result = await reply()
        except asyncio.CancelledError:
            if not self._is_mine():
                raise
        except Exception:
            await self._arrived()
            raise
        else:
            if not await self._arrived():
                return result
        return await handle_interrupt()

    def interrupt(self, msg: Any = None) -> None:
        """Interrupt the call, also from another thread. Further calls have no effect.

        This sets the request and then reads the task; the start of the call sets the task and then
        reads the request. So whichever thread is ahead, at least one of them sees the other.
        """
        self._interrupt_requested = True
        if self.task is None:
            return
        loop = self.task.get_loop()
        if _running_loop() is loop:
            self._interrupt(msg)
        else:
            loop.call_soon_threadsafe(self._interrupt, msg)

    def end(self) -> None:
        """Mark the call as ended and wake its waiters."""
        self._over = True
        for each in self._waiting:
            if not each.done():
                each.set_result(None)

    async def ended(self) -> None:
        """Wait until the call has ended. Only from its own event loop."""
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
        """Revert the interrupt's cancellation; return whether it was the only one."""
        self._over = True
        return self._interrupted and self._take_back() <= self._cancelled_before

    def _take_back(self) -> int:
        """Uncancel the task once; return the number of remaining cancellations."""
        return self.task.uncancel() if self.task is not None else 0

    async def _arrived(self) -> bool:
        """Receive an interrupt that came after the last await here, not at the caller's next await.

        If none arrives, the reply has caught it and handled it.
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
