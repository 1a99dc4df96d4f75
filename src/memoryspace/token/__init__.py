"""Token counters."""

from .base import TokenCounterBase
from .char import CharTokenCounter
from .estimate import EstimatedTokenCounter, estimate_tokens
from .openai import OpenAITokenCounter

__all__ = [
    "CharTokenCounter",
    "EstimatedTokenCounter",
    "OpenAITokenCounter",
    "TokenCounterBase",
    "estimate_tokens",
]
