"""Conversion of chat API messages to ``Msg``: the inverse of the formatters."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..message import ContentBlock, Msg, ToolUseBlock
from ..message.msg import ROLES, Role
from ..model.parsing import documents_in

_TOOL_ROLES = ("tool", "function")


def from_chat_messages(messages: Sequence[Mapping[str, Any]]) -> list[Msg]:
    """Return chat API messages as ``Msg``.

    A tool message becomes a system message with a tool result. The name of a message is its role.
    Of incomplete JSON arguments, the readable part is kept.
    """
    return [_message(each) for each in messages]


def _message(given: Mapping[str, Any]) -> Msg:
    said = str(given.get("role"))
    role: Role = said if said in ROLES else "system"  # type: ignore[assignment]  # checked here
    content = [_result(given)] if said in _TOOL_ROLES else _parts(given.get("content"))
    content += [_call(each) for each in given.get("tool_calls") or ()]
    return Msg(role, content, role, metadata=given.get("metadata"))


def _result(given: Mapping[str, Any]) -> ContentBlock:
    output: Any = _parts(given.get("content"))
    return {
        "type": "tool_result",
        "id": str(given.get("tool_call_id") or ""),
        "name": str(given.get("name") or ""),
        "output": output,
    }


def _parts(content: Any) -> list[ContentBlock]:
    if content is None or content == "":
        return []
    if isinstance(content, list):
        return [_part(each) for each in content]
    return [{"type": "text", "text": str(content)}]


def _part(part: Any) -> ContentBlock:
    if isinstance(part, dict) and part.get("type") == "text":
        return {"type": "text", "text": str(part.get("text", ""))}
    picture = part.get("image_url") if isinstance(part, dict) else None
    if isinstance(picture, dict) and isinstance(picture.get("url"), str):
        return {"type": "image", "source": {"type": "url", "url": picture["url"]}}
    return {"type": "text", "text": part if isinstance(part, str) else json.dumps(part)}


def _call(given: Mapping[str, Any]) -> ContentBlock:
    function = given.get("function") or {}
    raw = function.get("arguments")
    call: ToolUseBlock = {
        "type": "tool_use",
        "id": str(given.get("id") or ""),
        "name": str(function.get("name") or ""),
        "input": raw if isinstance(raw, dict) else _arguments(str(raw or "")),
    }
    if isinstance(raw, str):
        call["raw_input"] = raw
    return call


def _arguments(raw: str) -> dict[str, Any]:
    """Return the first JSON object in a text."""
    return next((each for each in documents_in(raw) if isinstance(each, dict)), {})
