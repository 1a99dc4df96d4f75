"""Conversion of messages in OpenAI's chat format to fields of ``Message``, without loss."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...errors import InvalidMessage
from .constants import MessageType, Role

_ROLES = {"developer": Role.SYSTEM, "function": Role.TOOL}  # OpenAI's other names for two roles


def fields_from_openai(said: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a ``Message``; a dict in this schema's format is returned as it is."""
    if said.get("type") in MessageType.all_values():
        return dict(said)
    if "role" not in said:
        raise InvalidMessage(f"a message needs 'role'; it has {[*said][:10]}")
    role = said["role"]
    role = _ROLES.get(role, role) if isinstance(role, str) else role
    read = _tool_result if role == Role.TOOL else _speech
    return {"role": role, **read(said), **_kept(said)}


def _kept(said: Mapping[str, Any]) -> dict[str, Any]:
    return {name: said[name] for name in ("id", "metadata") if said.get(name) is not None}


def _tool_result(said: Mapping[str, Any]) -> dict[str, Any]:
    answer = {
        "call_id": said.get("tool_call_id"),
        "name": said.get("name"),
        "output": said.get("content"),
    }
    return {
        "type": MessageType.FUNCTION_CALL_OUTPUT,
        "content": [{"type": "data", "data": answer}],
    }


def _speech(said: Mapping[str, Any]) -> dict[str, Any]:
    parts = _parts_of(said.get("content"))
    if isinstance(said.get("refusal"), str):
        parts.append({"type": "refusal", "refusal": said["refusal"]})
    calls = [_call(call) for call in _calls_of(said)]
    if calls:
        return {"type": MessageType.FUNCTION_CALL, "content": parts + calls}
    is_silent = said.get("content") is None and not parts
    return {"type": MessageType.MESSAGE, "content": None if is_silent else parts}


def _calls_of(said: Mapping[str, Any]) -> list[Any]:
    calls = said.get("tool_calls")
    if calls is None:
        calls = []
    if not isinstance(calls, list | tuple):
        raise InvalidMessage(f"tool_calls must be a list, got {type(calls).__name__}")
    return list(calls)


def _call(call: object) -> dict[str, Any]:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(call, Mapping) or not isinstance(function, Mapping):
        raise InvalidMessage("each of tool_calls must be a dict with 'function'")
    data = {
        "call_id": call.get("id"),
        "name": function.get("name"),
        "arguments": function.get("arguments"),
    }
    return {"type": "data", "data": data}


def _parts_of(content: object) -> list[dict[str, Any]]:
    if content is None:
        return []
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list | tuple):
        raise InvalidMessage(f"content must be a str or a list, got {type(content).__name__}")
    return [_part(part, number) for number, part in enumerate(content)]


def _part(part: object, number: int) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    if not isinstance(part, Mapping):
        raise InvalidMessage(f"content[{number}] must be a dict, got {type(part).__name__}")
    kind = part.get("type")
    read = _PARTS.get(kind) if isinstance(kind, str) else None
    return {"type": "data", "data": dict(part)} if read is None else read(part)


def _text(part: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "text", "text": part.get("text")}


def _refusal(part: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "refusal", "refusal": part.get("refusal")}


def _image(part: Mapping[str, Any]) -> dict[str, Any]:
    image = part.get("image_url")
    return {"type": "image", "image_url": _within(image, "url")}


def _audio(part: Mapping[str, Any]) -> dict[str, Any]:
    audio = part.get("input_audio")
    return {"type": "audio", "data": _within(audio, "data"), "format": _within(audio, "format")}


def _file(part: Mapping[str, Any]) -> dict[str, Any]:
    names = ("file_id", "filename", "file_data")
    return {"type": "file", **{name: _within(part.get("file", part), name) for name in names}}


def _within(value: object, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else value


_PARTS: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "text": _text,
    "input_text": _text,
    "output_text": _text,
    "refusal": _refusal,
    "image_url": _image,
    "input_audio": _audio,
    "file": _file,
}
