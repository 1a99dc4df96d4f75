"""Anthropic's messages. A system message stands first; models send it apart."""

from __future__ import annotations

import re
from typing import Any

from .arranging import Order
from .chat import ChatFormatter
from .dialect import Dialect, Message
from .media import Media
from .multi_agent import MultiAgentFormatter
from .turns import Part, Result, Speaker, Text, Thought, Turn

_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")


class AnthropicDialect(Dialect):
    """Content is a list of blocks. Results stand first in the user's message behind the calls."""

    order = Order(
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
        """Images, inline or at an address with ``https``."""
        is_near = media.media_type in _IMAGES or media.address.startswith("https://")
        return media.kind == "image" and is_near and (media.is_inline or media.is_on_the_web)

    def render(self, turn: Turn) -> list[Message]:
        """Return one message."""
        said = list(turn.parts)
        while said and isinstance(said[-1], Thought) and not turn.calls:
            said.pop()  # what is thought last has led to nothing
        blocks = [
            *map(_result, turn.results),
            *map(_block, said),
            *(
                {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}
                for call in turn.calls
            ),
        ]
        return [{"role": turn.role, "content": blocks}]

    def _keeps(self, thought: Thought, role: Speaker) -> bool:
        return role == "assistant" and bool(thought.signature)


def _result(result: Result) -> dict[str, Any]:
    content = [_block(part) for part in result.parts]
    return {"type": "tool_result", "tool_use_id": result.id, "content": content}


def _block(part: Part) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    if isinstance(part, Thought):
        return {"type": "thinking", "thinking": part.text, "signature": part.signature}
    source = {"type": "url", "url": part.address}
    if part.is_inline:
        source = {"type": "base64", "media_type": part.media_type, "data": part.data}
    return {"type": "image", "source": source}


class AnthropicChatFormatter(ChatFormatter):
    """For Anthropic: one user, one assistant."""

    dialect = AnthropicDialect()


class AnthropicMultiAgentFormatter(MultiAgentFormatter):
    """For Anthropic: many speakers."""

    dialect = AnthropicDialect()
