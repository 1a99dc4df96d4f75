"""Token counters."""

from .base import TokenCounterBase
from .estimate import CharTokenCounter, EstimatedTokenCounter, estimate_tokens
from .openai import OpenAITokenCounter

__all__ = [
    "CharTokenCounter",
    "EstimatedTokenCounter",
    "OpenAITokenCounter",
    "TokenCounterBase",
    "estimate_tokens",
]
