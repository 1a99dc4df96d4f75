"""A counter of characters: crude, deterministic, without dependencies."""

from __future__ import annotations

from typing import Any

from .base import TokenCounterBase


class CharTokenCounter(TokenCounterBase):
    """Counts the characters of ``str(message)``, one line per message."""

    async def count(
        self, messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None = None
    ) -> int:
        """Return the number of characters."""
        lines = [str(message) for message in messages]
        if tools:
            lines.append(str(tools))
        return len("\n".join(lines))
