"""Repair of a single block or message. An intact one is returned unchanged."""

from __future__ import annotations

import json
from typing import Any

from .msg import Msg, Role, peek_metadata
from .tool_blocks import TOOL_TYPES, Block, json_text

_DEEPEST = 64  # levels that are copied; anything deeper is shared


def is_block(block: Any) -> bool:
    """Return whether this is a dict with a block type."""
    return isinstance(block, dict) and isinstance(block.get("type"), str)


def as_block(junk: Any) -> Block:
    """Return a value that is not a block as a text block with all of its content."""
    return {"type": "text", "text": junk if isinstance(junk, str) else json_text(junk)}


def whole_call(call: Block, fallback_id: str) -> Block:
    """Return a call with an id, a name and arguments."""
    id, name, given = call.get("id"), call.get("name"), call.get("input")
    if isinstance(id, str) and id and isinstance(name, str) and name and isinstance(given, dict):
        return call
    unread = _unread_arguments(call)
    return {
        **call,
        "id": named_id(call) or fallback_id,
        "name": name if isinstance(name, str) and name else "unknown_tool",
        "input": given if isinstance(given, dict) else _first_object(unread),
        **({"raw_input": "\n".join(unread)} if unread else {}),
    }


def named_id(block: Block) -> str:
    """Return the id of a call or result as text, also if it is a number; "" if there is none."""
    id = block.get("id")
    return str(id) if isinstance(id, str | int) else ""


def whole_result(result: Block, call: Block) -> Block:
    """Return a result with its call's id, a name, and text or blocks as output."""
    name, output = result.get("name"), result.get("output")
    whole = output if _is_output(output) else _as_output(output)
    if result.get("id") == call["id"] and isinstance(name, str) and whole is output:
        return result
    name = name if isinstance(name, str) else call["name"]
    return {**result, "id": call["id"], "name": name, "output": whole}


def blocks_of_output(output: Any) -> list[Block]:
    """Return a tool's output as blocks that any message may contain."""
    if not isinstance(output, list):
        return [as_block(output)]
    return [item if _may_stand_anywhere(item) else as_block(item) for item in output]


def with_content(msg: Msg, content: list[Any], role: Role | None = None, id: str = "") -> Msg:
    """Return a copy of a message with other content. The two share no mutable part."""
    new = Msg(msg.name, _own(content), role or msg.role, _own(peek_metadata(msg)), msg.timestamp)
    new.id, new.invocation_id = id or msg.id, msg.invocation_id
    return new


def _unread_arguments(call: Block) -> list[str]:
    """Return the arguments as sent, where they could not be read as an object."""
    sent = [call.get("input"), call.get("raw_input")]
    unread = [json_text(each) if isinstance(each, list) else each for each in sent]
    return [*dict.fromkeys(each for each in unread if isinstance(each, str))]


def _first_object(texts: list[str]) -> dict[str, Any]:
    for text in texts:
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            return found
    return {}


def _is_output(output: Any) -> bool:
    if isinstance(output, list):
        return all(map(_may_stand_anywhere, output))
    return isinstance(output, str)


def _as_output(output: Any) -> str | list[Block]:
    return blocks_of_output(output) if isinstance(output, list) else json_text(output)


def _may_stand_anywhere(item: Any) -> bool:
    return is_block(item) and item["type"] not in TOOL_TYPES


def _own(value: Any, depth: int = _DEEPEST) -> Any:
    if depth and isinstance(value, dict):
        return {key: _own(item, depth - 1) for key, item in value.items()}
    if depth and isinstance(value, list):
        return [_own(item, depth - 1) for item in value]
    return value
