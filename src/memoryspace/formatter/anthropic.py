"""Formatters for Anthropic. System messages come first; the model sends them separately."""

from __future__ import annotations

import re
from typing import Any

from .arranging import TurnOrder
from .chat import ChatFormatter
from .dialect import Dialect, Message
from .media import Media
from .multi_agent import MultiAgentFormatter
from .turns import Part, PromptTurn, Speaker, TextPart, ThoughtPart, ToolResult

_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")


class AnthropicDialect(Dialect):
    """Content is a list of blocks; tool results come first in the user message after the calls."""

    order = TurnOrder(
        system="first",
        user_first=True,
        user_last=True,
        together=frozenset({"user", "assistant"}),
        results_by_user=True,
    )
    call_ids = re.compile(r"[a-zA-Z0-9_-]{1,64}", re.ASCII)
    media_in_results = True
    thinks = True

    def takes(self, media: Media) -> bool:
        """Return True for images, inline or at an ``https`` address."""
        is_near = media.media_type in _IMAGES or media.address.startswith("https://")
        return media.kind == "image" and is_near and (media.is_inline or media.is_on_the_web)

    def render(self, turn: PromptTurn) -> list[Message]:
        """Return one message."""
        parts = list(turn.parts)
        while parts and isinstance(parts[-1], ThoughtPart) and not turn.calls:
            parts.pop()  # a thinking block must not come last
        blocks = [
            *map(_result, turn.results),
            *map(_block, parts),
            *(
                {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}
                for call in turn.calls
            ),
        ]
        return [{"role": turn.role, "content": blocks}]

    def _keeps(self, thought: ThoughtPart, role: Speaker) -> bool:
        return role == "assistant" and bool(thought.signature)


def _result(result: ToolResult) -> dict[str, Any]:
    content = [_block(part) for part in result.parts]
    return {"type": "tool_result", "tool_use_id": result.id, "content": content}


def _block(part: Part) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    if isinstance(part, ThoughtPart):
        return {"type": "thinking", "thinking": part.text, "signature": part.signature}
    source = {"type": "url", "url": part.address}
    if part.is_inline:
        source = {"type": "base64", "media_type": part.media_type, "data": part.data}
    return {"type": "image", "source": source}


class AnthropicChatFormatter(ChatFormatter):
    """Formatter for Anthropic: conversations of one user and one assistant."""

    dialect = AnthropicDialect()


class AnthropicMultiAgentFormatter(MultiAgentFormatter):
    """Formatter for Anthropic: conversations of several agents."""

    dialect = AnthropicDialect()
