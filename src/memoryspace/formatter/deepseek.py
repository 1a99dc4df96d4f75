"""Formatters for DeepSeek: OpenAI's format with text content and separate reasoning."""

from __future__ import annotations

from .arranging import TurnOrder
from .chat import ChatFormatter
from .dialect import Message, text_of
from .media import Media
from .multi_agent import MultiAgentFormatter
from .openai import OpenAIDialect, tool_messages, with_calls
from .turns import PromptTurn, ThoughtPart


class DeepSeekDialect(OpenAIDialect):
    """User and assistant alternate, and the assistant is never last."""

    order = TurnOrder(user_last=True, together=frozenset({"user", "assistant"}))
    thinks = True

    def takes(self, media: Media) -> bool:
        """Return False: DeepSeek takes no media."""
        return False

    def render(self, turn: PromptTurn) -> list[Message]:
        """Return one message, or one for each result."""
        if turn.role == "tool":
            return tool_messages(turn)
        message: Message = {"role": turn.role, "content": text_of(turn.parts) or None}
        thoughts = [part.text for part in turn.parts if isinstance(part, ThoughtPart)]
        if thoughts:
            message["reasoning_content"] = "\n".join(thoughts)
        return [with_calls(message, turn)]


class DeepSeekChatFormatter(ChatFormatter):
    """Formatter for DeepSeek: conversations of one user and one assistant."""

    dialect = DeepSeekDialect()


class DeepSeekMultiAgentFormatter(MultiAgentFormatter):
    """Formatter for DeepSeek: conversations of several agents."""

    dialect = DeepSeekDialect()
