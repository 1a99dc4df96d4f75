"""Pipelines: agents in sequence, and agents in parallel."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

from ..agent import AgentBase
from ..agent.hooks import copied
from ..message import Msg


async def sequential_pipeline(
    agents: Sequence[AgentBase], msg: Msg | list[Msg] | None = None
) -> Msg | list[Msg] | None:
    """Call agents in sequence, each with the reply of the one before.

    Args:
        agents: The agents, in order.
        msg: The input of the first agent.

    Returns:
        The reply of the last agent.
    """
    for agent in agents:
        msg = await agent(msg)
    return msg


async def fanout_pipeline(
    agents: Sequence[AgentBase],
    msg: Msg | list[Msg] | None = None,
    enable_gather: bool = True,
    **kwargs: Any,  # further arguments of the agents
) -> list[Any]:
    """Call all agents with the same input.

    The first error is raised after the other calls have been cancelled and have ended: no task is
    left behind.

    Args:
        agents: The agents.
        msg: The input; each agent gets its own copy.
        enable_gather: Whether to call them concurrently, or one after another.
        **kwargs: Further arguments of the agents.

    Returns:
        The replies, in the order of the agents.
    """
    if not enable_gather:
        return [await agent(copied(msg), **kwargs) for agent in agents]
    return await _gathered([agent(copied(msg), **kwargs) for agent in agents])


class SequentialPipeline:
    """A reusable ``sequential_pipeline``."""

    def __init__(self, agents: Sequence[AgentBase]) -> None:
        self.agents = [*agents]

    async def __call__(self, msg: Msg | list[Msg] | None = None) -> Msg | list[Msg] | None:
        """Call the agents in sequence."""
        return await sequential_pipeline(self.agents, msg)


class FanoutPipeline:
    """A reusable ``fanout_pipeline``."""

    def __init__(self, agents: Sequence[AgentBase], enable_gather: bool = True) -> None:
        self.agents = [*agents]
        self.enable_gather = enable_gather

    async def __call__(self, msg: Msg | list[Msg] | None = None, **kwargs: Any) -> list[Any]:
        """Call all agents with the same input."""
        return await fanout_pipeline(self.agents, msg, self.enable_gather, **kwargs)


async def _gathered(calls: list[Coroutine[Any, Any, Any]]) -> list[Any]:
    tasks = [asyncio.create_task(call) for call in calls]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        raise
