"""Prompts of other providers in OpenAI's words, for their OpenAI-compatible servers.

Formatters write what a provider's own API takes. Its compatible server takes what OpenAI's does,
so DashScope's untyped parts, Ollama's images beside the text and Gemini's turns are retold here.
What is in OpenAI's words already stays as it is.
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
    """Return messages as OpenAI's API takes them; nothing given is changed."""
    told: list[Message] = []
    for number, message in enumerate(messages):
        if "parts" in message:
            told.extend(_from_gemini(message, number))
        else:
            told.append(_from_others(message))
    return told


def _from_others(message: Mapping[str, Any]) -> Message:
    told = dict(message)
    images = told.pop("images", None)
    if isinstance(told.get("content"), list):
        told["content"] = [_typed(part) for part in told["content"]]
    if images:
        told["content"] = [*_parts(told.get("content")), *map(_image, images)]
    if told.get("tool_calls"):
        told["tool_calls"] = [_written(call) for call in told["tool_calls"]]
    return told


def _typed(part: Any) -> Any:
    """A part as DashScope writes it, ``{"image": url}``, with its type."""
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
    """What a sound is in, by its media type or by the end of its name."""
    if address.startswith("data:"):
        return address.partition(";")[0].rpartition("/")[2] or "wav"
    ending = address.partition("?")[0].rpartition(".")[2]
    return ending if ending.isalnum() else "wav"


def _parts(content: Any) -> list[Any]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return list(content or ())


def _image(data: Any) -> Message:
    """An image as Ollama takes it: base64 alone, or an address."""
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
    """A turn of Gemini's: results are messages of their own, calls stand beside the text."""
    parts = [_spelled(part) for part in turn["parts"]]
    answers = [part["function_response"] for part in parts if "function_response" in part]
    for place, answer in enumerate(answers):
        yield {
            "role": "tool",
            "tool_call_id": answer.get("id") or f"call_{number - 1}_{place}",
            "content": json.dumps(answer["response"], ensure_ascii=False),
        }
    calls = [part["function_call"] for part in parts if "function_call" in part]
    content = [told for part in parts if (told := _said(part)) is not None]
    if content or calls:
        yield _turn(turn, content, calls, number)


def _turn(
    turn: Mapping[str, Any], content: list[Message], calls: list[Any], number: int
) -> Message:
    role = "assistant" if turn.get("role") == "model" else str(turn.get("role", "user"))
    told: Message = {"role": role, "content": content if content else None}
    if calls:
        told["tool_calls"] = [
            _written(
                {
                    "id": call.get("id") or f"call_{number}_{place}",
                    "function": {"name": call["name"], "arguments": call.get("args")},
                }
            )
            for place, call in enumerate(calls)
        ]
    return told


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
