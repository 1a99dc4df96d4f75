"""Formatters for OpenAI and compatible servers, such as vLLM and Ollama's ``/v1``."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

from .arranging import TurnOrder
from .chat import ChatFormatter
from .dialect import Dialect, Message, text_of_result
from .media import Media
from .multi_agent import MultiAgentFormatter
from .turns import Part, PromptTurn, ToolCall

_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_AUDIO_FORMATS = {"audio/wav": "wav", "audio/wave": "wav", "audio/mpeg": "mp3"}
_NOT_IN_SPEAKERS = re.compile(r"[\s<|\\/>]")
_LONGEST_SPEAKER = 64
_to_json = json.JSONEncoder(ensure_ascii=False).encode


class OpenAIDialect(Dialect):
    """Content is a list of parts; arguments are JSON text; results have the role ``tool``."""

    order = TurnOrder()
    call_ids = re.compile(r"[!-~]{1,40}", re.ASCII)

    def takes(self, media: Media) -> bool:
        """Return True for images inline or on the web, and for inline audio."""
        if media.kind == "image":
            return media.is_on_the_web or media.media_type in _IMAGES
        return media.kind == "audio" and media.media_type in _AUDIO_FORMATS

    def render(self, turn: PromptTurn) -> list[Message]:
        """Return one message, or one for each result."""
        if turn.role == "tool":
            return tool_messages(turn)
        message: Message = {"role": turn.role}
        speaker = _speaker(turn.name)
        if speaker:
            message["name"] = speaker
        message["content"] = [_part(part) for part in turn.parts] or None
        return [with_calls(message, turn)]


def tool_messages(turn: PromptTurn) -> list[Message]:
    """Return the results of a turn as messages of role ``tool``."""
    return [
        {
            "role": "tool",
            "tool_call_id": result.id,
            "content": text_of_result(result),
            "name": result.name,
        }
        for result in turn.results
    ]


def with_calls(message: Message, turn: PromptTurn) -> Message:
    """Add the tool calls of a turn to a message and return it."""
    if turn.calls:
        message["tool_calls"] = [function_call(call) for call in turn.calls]
    return message


def function_call(call: ToolCall) -> dict[str, Any]:
    """Return a tool call with its arguments as JSON text."""
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": _to_json(call.arguments)},
    }


@lru_cache(maxsize=256)
def _speaker(name: str) -> str:
    return _NOT_IN_SPEAKERS.sub("_", name)[:_LONGEST_SPEAKER]


def _part(part: Part) -> dict[str, Any]:
    if not isinstance(part, Media):
        return {"type": "text", "text": part.text}
    if part.kind == "image":
        return {"type": "image_url", "image_url": {"url": part.url}}
    audio = {"data": part.data, "format": _AUDIO_FORMATS[part.media_type]}
    return {"type": "input_audio", "input_audio": audio}


class OpenAIChatFormatter(ChatFormatter):
    """Formatter for OpenAI and compatible servers: one user and one assistant."""

    dialect = OpenAIDialect()


class OpenAIMultiAgentFormatter(MultiAgentFormatter):
    """Formatter for OpenAI and compatible servers: several agents."""

    dialect = OpenAIDialect()
