"""Runs one tool call. Every outcome, errors included, becomes a response for the model.

The response to an exception contains its type and message, which help the model to correct the
call. The log contains only the type: the message may quote a user.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from ..message import TextBlock
from ..model.parsing import whole_arguments_of
from .function import ToolFunction
from .response import ToolResponse, as_response, told
from .running import answers_of

INTERRUPTED = "The call was interrupted before it was done."
UNREADABLE = (
    "Error: the arguments are no JSON object; they may have been cut off. Nothing was done. "
    "Call it again with complete arguments."
)
logger = logging.getLogger(__name__)


def arguments_in(tool_call: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the arguments of a call; None if they are unreadable or incomplete.

    The text that the model sent (``raw_input``) decides, because truncated arguments may still
    parse.
    """
    raw, given = tool_call.get("raw_input"), tool_call.get("input")
    sent = raw if isinstance(raw, str) and raw.strip() else given
    if isinstance(sent, str):
        read = whole_arguments_of(sent)
        given = None if read is None else given if isinstance(given, Mapping) else read
    return given if isinstance(given, Mapping) else None


async def called(
    tool: ToolFunction, given: Mapping[str, Any]
) -> AsyncGenerator[ToolResponse, None]:
    """Call a tool and yield its response as it grows; the last one is complete.

    If the caller is cancelled, the last response is an interrupted one; then the cancellation is
    raised.
    """
    arguments, problems = tool.arguments(given)
    if problems:
        yield _refused(tool, problems)
        return
    so_far: ToolResponse | None = None
    try:
        async with aclosing(answers_of(tool.function, arguments)) as answers:
            async for answer in answers:
                so_far = as_response(answer)
                yield so_far
    except asyncio.CancelledError as error:
        if not _is_cancelled():  # the tool's own task was cancelled, not ours
            yield _ended(so_far, _error(tool, error))
            return
        yield interrupted(so_far)
        raise
    except Exception as error:
        yield _ended(so_far, _error(tool, error))


async def once(response: ToolResponse) -> AsyncGenerator[ToolResponse, None]:
    """Yield one response."""
    yield response


def interrupted(so_far: ToolResponse | None) -> ToolResponse:
    """Return the response so far, marked as interrupted."""
    return replace(_ended(so_far, INTERRUPTED), is_interrupted=True)


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _refused(tool: ToolFunction, problems: list[str]) -> ToolResponse:
    what = "; ".join(problems)
    return told(f"Error: {tool.name} was not called, its arguments are wrong: {what}.")


def _error(tool: ToolFunction, error: BaseException) -> str:
    kind = type(error).__name__
    logger.warning("tool %r failed: %s", tool.name, kind)
    return f"Error: {kind}: {error}" if str(error) else f"Error: {kind}"


def _ended(so_far: ToolResponse | None, text: str) -> ToolResponse:
    end = TextBlock(type="text", text=text)
    if so_far is None:
        return ToolResponse([end])
    return replace(so_far, content=[*so_far.content, end], is_last=True)
