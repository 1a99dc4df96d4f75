"""Formatters: convert conversations to the prompts of model providers.

The names and signatures are those of AgentScope v1.
"""

from .anthropic import AnthropicChatFormatter, AnthropicMultiAgentFormatter
from .base import FormatterBase
from .dashscope import DashScopeChatFormatter, DashScopeMultiAgentFormatter
from .deepseek import DeepSeekChatFormatter, DeepSeekMultiAgentFormatter
from .gemini import GeminiChatFormatter, GeminiMultiAgentFormatter
from .ollama import OllamaChatFormatter, OllamaMultiAgentFormatter
from .openai import OpenAIChatFormatter, OpenAIMultiAgentFormatter
from .truncating import PromptTooLong, TruncatedFormatterBase

__all__ = [
    "AnthropicChatFormatter",
    "AnthropicMultiAgentFormatter",
    "DashScopeChatFormatter",
    "DashScopeMultiAgentFormatter",
    "DeepSeekChatFormatter",
    "DeepSeekMultiAgentFormatter",
    "FormatterBase",
    "GeminiChatFormatter",
    "GeminiMultiAgentFormatter",
    "OllamaChatFormatter",
    "OllamaMultiAgentFormatter",
    "OpenAIChatFormatter",
    "OpenAIMultiAgentFormatter",
    "PromptTooLong",
    "TruncatedFormatterBase",
]
