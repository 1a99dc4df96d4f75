"""What providers demand of a prompt, as checks.

Each takes the messages of one request and raises ``AssertionError``, which says what is wrong and
where, if the provider or one of its models would refuse them. Where models of a provider differ,
the strictest counts. No check quotes what was said.
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
