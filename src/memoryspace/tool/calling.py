"""One call of a tool by a model: whatever comes of it, the model is told in words.

A function's own error is told with its type and its own words: they are what helps the model to
do better. The log holds only the type: the words may be a user's.
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
    """Return the arguments of a call; None if they cannot be read or are not whole.

    What a model sent (``raw_input``) decides: of arguments that were cut off in the middle, some
    may read well.
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
    """Call a tool and yield its answer as it grows; the last one is the whole of it.

    If the caller is cancelled, the last response is an interrupted one, and the cancellation goes
    on after it.
    """
    arguments, troubles = tool.arguments(given)
    if troubles:
        yield _refused(tool, troubles)
        return
    so_far: ToolResponse | None = None
    try:
        async with aclosing(answers_of(tool.function, arguments)) as answers:
            async for answer in answers:
                so_far = as_response(answer)
                yield so_far
    except asyncio.CancelledError as error:
        if not _is_cancelled():  # something within the tool was, which is the tool's own trouble
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
    """Return what there is of an answer, and that it was interrupted."""
    return replace(_ended(so_far, INTERRUPTED), is_interrupted=True)


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _refused(tool: ToolFunction, troubles: list[str]) -> ToolResponse:
    what = "; ".join(troubles)
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
