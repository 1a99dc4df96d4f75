"""DeepSeek's messages: OpenAI's, with plain text for content, and thoughts beside it."""

from __future__ import annotations

from .arranging import Order
from .chat import ChatFormatter
from .dialect import Message, text_of
from .media import Media
from .multi_agent import MultiAgentFormatter
from .openai import OpenAIDialect, tool_messages, with_calls
from .turns import Thought, Turn


class DeepSeekDialect(OpenAIDialect):
    """User and assistant take turns, and the assistant's is not the last."""

    order = Order(user_last=True, together=frozenset({"user", "assistant"}))
    thinks = True

    def takes(self, media: Media) -> bool:
        """Nothing."""
        return False

    def render(self, turn: Turn) -> list[Message]:
        """Return one message, or one for each result."""
        if turn.role == "tool":
            return tool_messages(turn)
        message: Message = {"role": turn.role, "content": text_of(turn.parts) or None}
        thoughts = [part.text for part in turn.parts if isinstance(part, Thought)]
        if thoughts:
            message["reasoning_content"] = "\n".join(thoughts)
        return [with_calls(message, turn)]


class DeepSeekChatFormatter(ChatFormatter):
    """For DeepSeek: one user, one assistant."""

    dialect = DeepSeekDialect()


class DeepSeekMultiAgentFormatter(MultiAgentFormatter):
    """For DeepSeek: many speakers."""

    dialect = DeepSeekDialect()
