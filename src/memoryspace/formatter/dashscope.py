"""Formatters for DashScope's native API. Text-only prompts also fit its OpenAI-compatible API."""

from __future__ import annotations

from typing import Any

from .arranging import TurnOrder
from .chat import ChatFormatter
from .dialect import Message, text_of
from .media import Media
from .multi_agent import MultiAgentFormatter
from .openai import OpenAIDialect, tool_messages, with_calls
from .turns import Part, PromptTurn


class DashScopeDialect(OpenAIDialect):
    """Content is a string, or with media a list of ``{kind: value}``."""

    order = TurnOrder(system="first", user_first=True)

    def takes(self, media: Media) -> bool:
        """Return True for media that are inline or on the web."""
        return media.is_inline or media.is_on_the_web

    def render(self, turn: PromptTurn) -> list[Message]:
        """Return one message, or one for each result."""
        if turn.role == "tool":
            return tool_messages(turn)
        content: str | list[Any] = text_of(turn.parts)
        if any(isinstance(part, Media) for part in turn.parts):
            content = [_part(part) for part in turn.parts]
        return [with_calls({"role": turn.role, "content": content}, turn)]


def _part(part: Part) -> dict[str, str]:
    return {part.kind: part.url} if isinstance(part, Media) else {"text": part.text}


class DashScopeChatFormatter(ChatFormatter):
    """Formatter for DashScope: conversations of one user and one assistant."""

    dialect = DashScopeDialect()


class DashScopeMultiAgentFormatter(MultiAgentFormatter):
    """Formatter for DashScope: conversations of several agents."""

    dialect = DashScopeDialect()
