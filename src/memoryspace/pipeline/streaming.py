"""``stream_printing_messages``: a stream of the messages that agents print."""

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
    """Run ``coroutine_task`` and yield everything that the agents print meanwhile.

    Leaving the stream early (``break``, ``aclose``) cancels the task. In any case no task keeps
    running, and the agents' queues are disabled again. An agent prints into one stream at a time.

    Args:
        agents: The agents to watch.
        coroutine_task: The work, such as ``agent(msg)``. Its error is raised after its output.
        queue: A queue to use. If it is bounded, the agents wait for the reader.
        end_signal: Put into the queue from elsewhere, this ends the stream.
        yield_speech: Whether to yield the speech as a third item.

    Yields:
        ``(msg, last)``, where ``last`` says whether the message is complete.
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
    """Return the next item, or ``_OVER`` when the task has ended and the queue is empty.

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
        if agent.msg_queue is queue:  # it may belong to another stream by now
            agent.set_msg_queue_enabled(False)


async def _ended(task: asyncio.Future[Any]) -> None:
    """Cancel the task if it still runs, and wait for its end."""
    if not task.done():
        task.cancel()
        await asyncio.wait([task])
