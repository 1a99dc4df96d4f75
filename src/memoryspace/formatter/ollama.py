"""Formatters for Ollama's native API. For its OpenAI-compatible API use the OpenAI formatters."""

from __future__ import annotations

from .arranging import TurnOrder
from .chat import ChatFormatter
from .dialect import Message, text_of
from .media import Media
from .multi_agent import MultiAgentFormatter
from .openai import OpenAIDialect, tool_messages
from .turns import PromptTurn


class OllamaDialect(OpenAIDialect):
    """Content is text; images are separate, in base64; arguments are objects, not JSON text."""

    order = TurnOrder()

    def takes(self, media: Media) -> bool:
        """Return True for inline images."""
        return media.kind == "image" and media.is_inline

    def render(self, turn: PromptTurn) -> list[Message]:
        """Return one message, or one for each result."""
        if turn.role == "tool":
            return tool_messages(turn)
        images = [part.data for part in turn.parts if isinstance(part, Media)]
        message: Message = {"role": turn.role, "content": text_of(turn.parts) or None}
        if images:
            message |= {"content": message["content"] or "", "images": images}
        if turn.calls:
            message["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in turn.calls
            ]
        return [message]


class OllamaChatFormatter(ChatFormatter):
    """Formatter for Ollama: conversations of one user and one assistant."""

    dialect = OllamaDialect()


class OllamaMultiAgentFormatter(MultiAgentFormatter):
    """Formatter for Ollama: conversations of several agents."""

    dialect = OllamaDialect()
