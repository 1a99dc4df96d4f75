"""The messages of Ollama's own API. For its OpenAI-compatible one take ``OpenAIChatFormatter``."""

from __future__ import annotations

from .arranging import Order
from .chat import ChatFormatter
from .dialect import Message, text_of
from .media import Media
from .multi_agent import MultiAgentFormatter
from .openai import OpenAIDialect, tool_messages
from .turns import Turn


class OllamaDialect(OpenAIDialect):
    """Content is plain text, images stand beside it in base64, arguments are no JSON text."""

    order = Order()

    def takes(self, media: Media) -> bool:
        """Inline images."""
        return media.kind == "image" and media.is_inline

    def render(self, turn: Turn) -> list[Message]:
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
    """For Ollama: one user, one assistant."""

    dialect = OllamaDialect()


class OllamaMultiAgentFormatter(MultiAgentFormatter):
    """For Ollama: many speakers."""

    dialect = OllamaDialect()
