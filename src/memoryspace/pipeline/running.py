"""Agents one after another, and agents side by side."""

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
    """Ask one agent after another, each with the reply of the one before."""
    for agent in agents:
        msg = await agent(msg)
    return msg


async def fanout_pipeline(
    agents: Sequence[AgentBase],
    msg: Msg | list[Msg] | None = None,
    enable_gather: bool = True,
    **kwargs: Any,  # further arguments of the agents, which are their own affair
) -> list[Any]:
    """Ask all agents the same, each with a copy of its own; their replies in the agents' order.

    With ``enable_gather`` all at once, otherwise in turn. The first error is raised; by then the
    others are cancelled and have ended: no task is left behind.
    """
    if not enable_gather:
        return [await agent(copied(msg), **kwargs) for agent in agents]
    return await _gathered([agent(copied(msg), **kwargs) for agent in agents])


class SequentialPipeline:
    """``sequential_pipeline`` of always the same agents."""

    def __init__(self, agents: Sequence[AgentBase]) -> None:
        self.agents = [*agents]

    async def __call__(self, msg: Msg | list[Msg] | None = None) -> Msg | list[Msg] | None:
        """Ask one agent after another."""
        return await sequential_pipeline(self.agents, msg)


class FanoutPipeline:
    """``fanout_pipeline`` of always the same agents."""

    def __init__(self, agents: Sequence[AgentBase], enable_gather: bool = True) -> None:
        self.agents = [*agents]
        self.enable_gather = enable_gather

    async def __call__(self, msg: Msg | list[Msg] | None = None, **kwargs: Any) -> list[Any]:
        """Ask all agents the same."""
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
