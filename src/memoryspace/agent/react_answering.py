"""Model answers: received as they grow, printed and stored, even if they are cut off."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Any, TypeAlias

from ..errors import ModelFailed
from ..loops import finish
from ..memory import MemoryBase
from ..message import Msg, repair
from ..model import ChatModelBase, ChatResponse, ToolChoice
from ..model.schemas import Schema
from .react_state import says_something

Show: TypeAlias = Callable[[Msg, bool], Awaitable[None]]  # a message, and whether it is complete


async def ask(
    model: ChatModelBase,
    prompt: list[dict[str, Any]],
    tools: Sequence[Schema],
    tool_choice: ToolChoice | None,
) -> ChatResponse | AsyncIterator[ChatResponse]:
    """Return a model's response or stream of responses; raise ``ModelFailed`` for anything else."""
    if tools:
        answer: Any = await model(prompt, tools=[*tools], tool_choice=tool_choice)
    else:
        answer = await model(prompt)
    return answer if isinstance(answer, AsyncIterator) else _checked(answer)


async def receive(
    said: Msg, asked: Awaitable[ChatResponse | AsyncIterator[ChatResponse]], show: Show
) -> None:
    """Update ``said`` with the model's answer as it grows."""
    answer = await asked
    if isinstance(answer, ChatResponse):
        _take(said, answer)
    elif isinstance(answer, AsyncGenerator):
        async with aclosing(answer):
            await _follow(said, answer, show)
    else:
        await _follow(said, answer, show)
    await show(said, True)


async def store_cut_off(memory: MemoryBase, said: Msg) -> None:
    """Store a message that was cut off, with a result for every tool call in it.

    The result says that there is none: a call whose arguments may be cut off must not run. A
    message of thinking blocks only is not stored.
    """
    if says_something(said):
        await finish(memory.add(repair([said]).messages))


def whole(said: Msg) -> Msg:
    """Return the message with an id, a name and arguments in each tool call."""
    return repair([said]).messages[0]


async def _follow(said: Msg, answer: AsyncIterator[ChatResponse], show: Show) -> None:
    async for so_far in answer:
        _take(said, _checked(so_far))
        await show(said, False)


def _take(said: Msg, response: ChatResponse) -> None:
    said.invocation_id = response.id
    said.content = [block for block in response.content if not _is_result(block)]


def _is_result(block: Any) -> bool:
    """Return whether a block is a tool result, which a model must not make up."""
    return isinstance(block, dict) and block.get("type") == "tool_result"


def _checked(answer: Any) -> ChatResponse:
    if not isinstance(answer, ChatResponse) or not isinstance(answer.content, list):
        raise ModelFailed(f"the model gave a {type(answer).__name__} instead of an answer")
    return answer
