"""Calls of chat models, reported as operations."""

from __future__ import annotations

import functools
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from ..operations import Operation, operation
from .contract import ChatModel, Completion

if TYPE_CHECKING:
    from .base import ChatModelBase, ChatResponse


async def completed(
    model: ChatModel,
    messages: Sequence[Mapping[str, str]],
    *,
    schema: Mapping[str, Any] | None = None,
) -> Completion:
    """Return a model's answer; see ``ChatModel.complete``."""
    with operation("model.call", on=model.name, owner=model) as done:
        done.count(given=len(messages))
        found = await model.complete(messages, schema=schema)
        _count(done, found.input_tokens, found.output_tokens)
        return found


def reported(call: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """Wrap the ``__call__`` of a model in an operation, which ends with the stream."""

    @functools.wraps(call)
    async def reported_call(self: ChatModelBase, *args: Any, **options: Any) -> Any:
        with operation("model.call", on=self.name, owner=self) as done:
            if not done.is_reported:
                return await call(self, *args, **options)
            messages = args[0] if args else options.get("messages", ())
            done.count(given=len(messages))
            answer = await call(self, *args, **options)
            if isinstance(answer, AsyncGenerator):
                done.stay_open()
                return _until_end(done, answer)
            _count_response(done, answer)
            return answer

    return reported_call


async def _until_end(
    done: Operation, answer: AsyncGenerator[ChatResponse, None]
) -> AsyncGenerator[ChatResponse, None]:
    last: ChatResponse | None = None
    try:
        async with aclosing(answer):
            async for last in answer:
                yield last
    except BaseException as error:
        _count_response(done, last)
        done.end(error)
        raise
    _count_response(done, last)
    done.end()


def _count_response(done: Operation, response: Any) -> None:
    usage = getattr(response, "usage", None)
    if usage is not None:
        _count(done, usage.input_tokens, usage.output_tokens)


def _count(done: Operation, input_tokens: int | None, output_tokens: int | None) -> None:
    if input_tokens is not None:
        done.count(input_tokens=input_tokens)
    if output_tokens is not None:
        done.count(output_tokens=output_tokens)
