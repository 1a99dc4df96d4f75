"""A model's answer: heard as it grows, shown, and remembered, also if it is cut off."""

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
from .react_question import says_something

Show: TypeAlias = Callable[[Msg, bool], Awaitable[None]]  # a message, and whether it is complete


async def ask(
    model: ChatModelBase,
    prompt: list[dict[str, Any]],
    tools: Sequence[Schema],
    tool_choice: ToolChoice | None,
) -> ChatResponse | AsyncIterator[ChatResponse]:
    """Return a model's answer, or one that grows; ``ModelFailed`` for what is neither."""
    if tools:
        answer: Any = await model(prompt, tools=[*tools], tool_choice=tool_choice)
    else:
        answer = await model(prompt)
    return answer if isinstance(answer, AsyncIterator) else _checked(answer)


async def hear(
    said: Msg, asked: Awaitable[ChatResponse | AsyncIterator[ChatResponse]], show: Show
) -> None:
    """Let ``said`` grow as the model's answer does."""
    answer = await asked
    if isinstance(answer, ChatResponse):
        _take(said, answer)
    elif isinstance(answer, AsyncGenerator):
        async with aclosing(answer):
            await _follow(said, answer, show)
    else:
        await _follow(said, answer, show)
    await show(said, True)


async def remember_cut_off(memory: MemoryBase, said: Msg) -> None:
    """Store what there is of a message that was cut off, with a result for every call in it.

    It tells that there is none: nobody is to run a call whose arguments may be cut off. What was
    only thought is nothing.
    """
    if says_something(said):
        await finish(memory.add(repair([said]).messages))


def whole(said: Msg) -> Msg:
    """Return a message whose calls have an id, a name and arguments each."""
    return repair([said]).messages[0]


async def _follow(said: Msg, answer: AsyncIterator[ChatResponse], show: Show) -> None:
    async for so_far in answer:
        _take(said, _checked(so_far))
        await show(said, False)


def _take(said: Msg, response: ChatResponse) -> None:
    said.invocation_id = response.id
    said.content = [block for block in response.content if not _is_result(block)]


def _is_result(block: Any) -> bool:
    """Results are the tools' to give; a model that makes one up is not to be believed."""
    return isinstance(block, dict) and block.get("type") == "tool_result"


def _checked(answer: Any) -> ChatResponse:
    if not isinstance(answer, ChatResponse) or not isinstance(answer.content, list):
        raise ModelFailed(f"the model gave a {type(answer).__name__} instead of an answer")
    return answer
