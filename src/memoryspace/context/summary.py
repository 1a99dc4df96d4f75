"""Summaries of what left: by a model, or of what was said itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ..message import Msg


class Summariser(Protocol):
    """Merges messages that leave into what earlier summaries said."""

    async def __call__(self, earlier: str, messages: Sequence[Msg], max_tokens: int) -> str:
        """Return one text that stands for both. It may raise: another one then does the work."""
