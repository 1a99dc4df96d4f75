"""Conversion of other providers' prompts to OpenAI's format, for OpenAI-compatible servers.

Formatters write the format of a provider's native API, but its compatible server takes OpenAI's. So
DashScope's untyped parts, Ollama's separate images and Gemini's turns are converted here. Messages
in OpenAI's format are unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

Message: TypeAlias = dict[str, Any]

_SPELLING = {
    "inlineData": "inline_data",
    "functionCall": "function_call",
    "functionResponse": "function_response",
    "mimeType": "mime_type",
}


def as_openai(messages: Sequence[Mapping[str, Any]]) -> list[Message]:
    """Return messages in OpenAI's format; the given ones are not changed."""
    converted: list[Message] = []
    for number, message in enumerate(messages):
        if "parts" in message:
            converted.extend(_from_gemini(message, number))
        else:
            converted.append(_from_others(message))
    return converted


def _from_others(message: Mapping[str, Any]) -> Message:
    converted = dict(message)
    images = converted.pop("images", None)
    if isinstance(converted.get("content"), list):
        converted["content"] = [_typed(part) for part in converted["content"]]
    if images:
        converted["content"] = [*_parts(converted.get("content")), *map(_image, images)]
    if converted.get("tool_calls"):
        converted["tool_calls"] = [_written(call) for call in converted["tool_calls"]]
    return converted


def _typed(part: Any) -> Any:
    """Add the type to a part in DashScope's format, ``{"image": url}``."""
    if not isinstance(part, Mapping) or "type" in part:
        return part
    if "text" in part:
        return {"type": "text", "text": part["text"]}
    if "image" in part:
        return _url("image", part["image"])
    if "video" in part and isinstance(part["video"], str):
        return _url("video", part["video"])
    if "audio" in part:
        sound = {"data": part["audio"], "format": _ending(str(part["audio"]))}
        return {"type": "input_audio", "input_audio": sound}
    return part


def _ending(address: str) -> str:
    """Return the format of an audio file, by its media type or file extension."""
    if address.startswith("data:"):
        return address.partition(";")[0].rpartition("/")[2] or "wav"
    ending = address.partition("?")[0].rpartition(".")[2]
    return ending if ending.isalnum() else "wav"


def _parts(content: Any) -> list[Any]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return list(content or ())


def _image(data: Any) -> Message:
    """Convert an image in Ollama's format: base64 data, or an address."""
    is_address = ":" in str(data)[:12]
    return _url("image", data if is_address else f"data:image/png;base64,{data}")


def _url(kind: str, url: Any) -> Message:
    return {"type": f"{kind}_url", f"{kind}_url": {"url": url}}


def _written(call: Mapping[str, Any]) -> Message:
    function = dict(call["function"])
    if not isinstance(function.get("arguments"), str):
        function["arguments"] = json.dumps(function.get("arguments") or {}, ensure_ascii=False)
    return {"type": "function", **call, "function": function}


def _from_gemini(turn: Mapping[str, Any], number: int) -> Iterator[Message]:
    """Convert a turn of Gemini: results become separate messages, calls join the text."""
    parts = [_spelled(part) for part in turn["parts"]]
    answers = [part["function_response"] for part in parts if "function_response" in part]
    for place, answer in enumerate(answers):
        yield {
            "role": "tool",
            "tool_call_id": answer.get("id") or f"call_{number - 1}_{place}",
            "content": json.dumps(answer["response"], ensure_ascii=False),
        }
    calls = [part["function_call"] for part in parts if "function_call" in part]
    content = [converted for part in parts if (converted := _said(part)) is not None]
    if content or calls:
        yield _turn(turn, content, calls, number)


def _turn(
    turn: Mapping[str, Any], content: list[Message], calls: list[Any], number: int
) -> Message:
    role = "assistant" if turn.get("role") == "model" else str(turn.get("role", "user"))
    converted: Message = {"role": role, "content": content if content else None}
    if calls:
        converted["tool_calls"] = [
            _written(
                {
                    "id": call.get("id") or f"call_{number}_{place}",
                    "function": {"name": call["name"], "arguments": call.get("args")},
                }
            )
            for place, call in enumerate(calls)
        ]
    return converted


def _said(part: Mapping[str, Any]) -> Message | None:
    if "text" in part:
        return {"type": "text", "text": part["text"]}
    if "inline_data" not in part:
        return None
    data = _spelled(part["inline_data"])
    kind, _, form = str(data["mime_type"]).partition("/")
    if kind == "audio":
        return {"type": "input_audio", "input_audio": {"data": data["data"], "format": form}}
    return _url("image", f"data:{data['mime_type']};base64,{data['data']}")


def _spelled(part: Mapping[str, Any]) -> Message:
    return {_SPELLING.get(key, key): value for key, value in part.items()}
