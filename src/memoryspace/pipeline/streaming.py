"""``stream_printing_messages``: what agents print while they work, as a stream of messages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Sequence
from typing import Any

from ..agent import AgentBase

_OVER = object()


async def stream_printing_messages(
    agents: Sequence[AgentBase],
    coroutine_task: Coroutine[Any, Any, Any],
    queue: asyncio.Queue[Any] | None = None,
    end_signal: str = "[END]",
    yield_speech: bool = False,
) -> AsyncGenerator[Any, None]:
    """Run ``coroutine_task`` and yield ``(msg, last)`` for all that the agents print meanwhile.

    ``last`` marks the last piece of a message; with ``yield_speech`` there is a third item. The
    task's error is raised after what it printed. Who leaves early (``break``, ``aclose``) cancels
    the task. In any case nothing runs afterwards and the agents' queues are off again.

    A ``queue`` of one's own may be bounded: the agents wait for the reader. ``end_signal`` put into
    it from elsewhere ends the stream. An agent prints into one stream at a time.
    """
    queue = asyncio.Queue() if queue is None else queue
    for agent in agents:
        agent.set_msg_queue_enabled(True, queue)
    task = asyncio.ensure_future(coroutine_task)
    try:
        while (item := await _next(queue, task)) is not _OVER:
            if isinstance(item, str) and item == end_signal:
                return
            yield item if yield_speech else item[:2]
        await task
    finally:
        _turn_off(agents, queue)
        await _ended(task)


async def _next(queue: asyncio.Queue[Any], task: asyncio.Future[Any]) -> Any:
    """Return what comes next, or ``_OVER`` when the task has ended and nothing is left.

    A task that waits for an item and is cancelled leaves it in the queue.
    """
    if queue.empty() and not task.done():
        arrival = asyncio.ensure_future(queue.get())
        try:
            await asyncio.wait({arrival, task}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await _ended(arrival)
        if not arrival.cancelled():
            return arrival.result()
    return _OVER if queue.empty() else queue.get_nowait()


def _turn_off(agents: Sequence[AgentBase], queue: asyncio.Queue[Any]) -> None:
    for agent in agents:
        if agent.msg_queue is queue:  # it may print into another stream by now
            agent.set_msg_queue_enabled(False)


async def _ended(task: asyncio.Future[Any]) -> None:
    """Cancel the task if it still runs, and wait for its end."""
    if not task.done():
        task.cancel()
        await asyncio.wait([task])
