"""Tool results: received as they grow, printed and stored, even if they are cut off."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from ..loops import finish
from ..memory import MemoryBase
from ..message import Msg, ToolResultBlock, ToolUseBlock
from ..tool import ToolResponse, told
from ..tool.calling import interrupted
from .react_answering import Show
from .react_turns import ENDED

_NOTHING = told("The tool answered nothing.")


async def act(
    tool_call: ToolUseBlock,
    responses: AsyncGenerator[ToolResponse, None],
    memory: MemoryBase,
    show: Show,
) -> None:
    """Print and store the result of a tool call, whatever its outcome."""
    response: ToolResponse | None = None
    result = Msg("system", [], "system")
    try:
        async with aclosing(responses):
            async for response in responses:
                result.content = [_block(tool_call, response)]
                if response.stream or not response.is_last:
                    await show(result, False)
        result.content = [_block(tool_call, response if response is not None else _NOTHING)]
        await show(result, True)
    except ENDED:
        if response is None or not response.is_interrupted:
            response = interrupted(response)
        result.content = [_block(tool_call, response)]
        await finish(memory.add(result))
        raise
    await finish(memory.add(result))


def _block(tool_call: ToolUseBlock, response: ToolResponse) -> ToolResultBlock:
    return {
        "type": "tool_result",
        "id": tool_call["id"],
        "name": tool_call["name"],
        "output": [*response.content],
    }
