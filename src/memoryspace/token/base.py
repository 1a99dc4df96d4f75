"""``TokenCounterBase``: the interface of token counters, which count formatted prompts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any


class TokenCounterBase(ABC):
    """Counts the tokens of a prompt: formatted messages and tool schemas."""

    @abstractmethod
    async def count(
        self, messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None = None
    ) -> int:
        """Return the number of tokens in a prompt.

        Args:
            messages: Formatted messages, as a provider takes them.
            tools: JSON schemas of the tools.
        """


def texts_in(value: Any) -> Iterator[str]:
    """Yield every string in JSON-like data, keys and values, and numbers as text."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield str(key)
            yield from texts_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from texts_in(item)
    elif value is not None:
        yield str(value)
