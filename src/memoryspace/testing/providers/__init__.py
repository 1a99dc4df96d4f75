"""Checks of prompts against the rules of each provider.

Each check takes the messages of one request and raises ``AssertionError``, with the rule and the
place, if the provider or one of its models would refuse them. If a provider's models differ, the
strictest rule applies. Errors never quote the messages.
"""

from .anthropic import check_anthropic
from .chat import check_dashscope, check_deepseek, check_ollama, check_openai
from .gemini import check_gemini

__all__ = [
    "check_anthropic",
    "check_dashscope",
    "check_deepseek",
    "check_gemini",
    "check_ollama",
    "check_openai",
]
