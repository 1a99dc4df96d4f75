"""Chat models: a small protocol, models of several providers, and validated answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..extras import Lazy, lazily, listing
from .ask import ask
from .base import Answer, ChatModelBase, ChatResponse, ChatUsage, ToolChoice, collected
from .contract import ChatModel, Completion
from .openai_compatible import OpenAICompatibleModel
from .prompting import data_block, prompt_messages, read_prompt
from .spending import Call, Spending, Spent
from .structured import json_schema_of, validated

if TYPE_CHECKING:
    from .anthropic import AnthropicChatModel
    from .openai import OpenAIChatModel
    from .providers import (
        DashScopeChatModel,
        DeepSeekChatModel,
        GeminiChatModel,
        OllamaChatModel,
    )
    from .wrapped import WrappedChatModel

__all__ = [
    "Answer",
    "AnthropicChatModel",
    "Call",
    "ChatModel",
    "ChatModelBase",
    "ChatResponse",
    "ChatUsage",
    "Completion",
    "DashScopeChatModel",
    "DeepSeekChatModel",
    "GeminiChatModel",
    "OllamaChatModel",
    "OpenAIChatModel",
    "OpenAICompatibleModel",
    "Spending",
    "Spent",
    "ToolChoice",
    "WrappedChatModel",
    "ask",
    "collected",
    "data_block",
    "json_schema_of",
    "prompt_messages",
    "read_prompt",
    "validated",
]

__dir__ = listing(__name__)
__getattr__ = lazily(
    __name__,
    {
        "AnthropicChatModel": Lazy("anthropic", "anthropic", "anthropic"),
        "DashScopeChatModel": Lazy("providers", "openai", "openai"),
        "DeepSeekChatModel": Lazy("providers", "openai", "openai"),
        "GeminiChatModel": Lazy("providers", "openai", "openai"),
        "OllamaChatModel": Lazy("providers", "openai", "openai"),
        "OpenAIChatModel": Lazy("openai", "openai", "openai"),
        "WrappedChatModel": Lazy("wrapped"),
    },
)
