"""Read-only access to the tool calls and results of messages, without copies."""

from __future__ import annotations

import json
import reprlib
from typing import Any, TypeAlias

from .msg import Msg, peek_content

Block: TypeAlias = dict[str, Any]

TOOL_TYPES = ("tool_use", "tool_result")


def calls_in(msg: Msg) -> list[Block]:
    """Return the tool calls of a message. Do not change them."""
    return _of_type(msg, "tool_use")


def results_in(msg: Msg) -> list[Block]:
    """Return the tool results of a message. Do not change them."""
    return _of_type(msg, "tool_result")


def has_tool_blocks(msg: Msg) -> bool:
    """Return whether a message contains a tool call or a tool result."""
    return bool(calls_in(msg) or results_in(msg))


def text_of_output(output: Any) -> str:
    """Return the text of a tool's output; other blocks are shown as their type in brackets."""
    if isinstance(output, str):
        return output
    if not isinstance(output, list):
        return json_text(output)
    return "\n".join(_text_of_item(item) for item in output)


def json_text(value: Any) -> str:
    """Return any value as text: as JSON if possible, else as its ``repr``."""
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError):
        return repr(value)
    except RecursionError:
        return reprlib.repr(value)  # truncated where it is nested too deeply


def _text_of_item(item: Any) -> str:
    if not isinstance(item, dict):
        return item if isinstance(item, str) else json_text(item)
    return str(item.get("text", "")) if item.get("type") == "text" else f"[{item.get('type')}]"


def _of_type(msg: Msg, kind: str) -> list[Block]:
    content = peek_content(msg)
    if isinstance(content, str):
        return []
    blocks: Any = content
    return [block for block in blocks if isinstance(block, dict) and block.get("type") == kind]
