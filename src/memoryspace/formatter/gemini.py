"""Formatters for Gemini, with the spelling of its SDK (``function_call``)."""

from __future__ import annotations

import re
from typing import Any

from .arranging import TurnOrder
from .chat import ChatFormatter
from .dialect import Dialect, Message, text_of_result
from .media import Media
from .multi_agent import MultiAgentFormatter
from .turns import Part, PromptTurn, Speaker, ToolCall, ToolResult


class GeminiDialect(Dialect):
    """Roles are ``user`` and ``model``. All results of a turn form one turn, in call order."""

    order = TurnOrder(
        system="never", user_first=True, user_last=True, together=frozenset({"assistant"})
    )
    call_ids = re.compile(r"[!-~]{1,128}", re.ASCII)
    name_signs = re.compile(r"[^a-zA-Z0-9_.:-]", re.ASCII)

    def name(self, name: str) -> str:
        """Return a name that starts with a letter or an underscore."""
        fitted = super().name(name)
        begins_well = fitted[0].isalpha() or fitted[0] == "_"
        return fitted if begins_well else f"_{fitted}"[: self.longest_name]

    def takes(self, media: Media) -> bool:
        """Return True for inline media."""
        return media.is_inline

    def shows(self, role: Speaker) -> bool:
        """Return True for the user and the assistant."""
        return role in ("user", "assistant")

    def render(self, turn: PromptTurn) -> list[Message]:
        """Return one content."""
        parts = [
            *map(_part, turn.parts),
            *map(_call, turn.calls),
            *map(_response, turn.results),
        ]
        return [{"role": "model" if turn.role == "assistant" else "user", "parts": parts}]


def _part(part: Part) -> dict[str, Any]:
    if isinstance(part, Media):
        return {"inline_data": {"data": part.data, "mime_type": part.media_type}}
    return {"text": part.text}


def _call(call: ToolCall) -> dict[str, Any]:
    return {"function_call": {"id": call.id, "name": call.name, "args": call.arguments}}


def _response(result: ToolResult) -> dict[str, Any]:
    response = {"output": text_of_result(result)}
    return {"function_response": {"id": result.id, "name": result.name, "response": response}}


class GeminiChatFormatter(ChatFormatter):
    """Formatter for Gemini: conversations of one user and one assistant."""

    dialect = GeminiDialect()


class GeminiMultiAgentFormatter(MultiAgentFormatter):
    """Formatter for Gemini: conversations of several agents."""

    dialect = GeminiDialect()
