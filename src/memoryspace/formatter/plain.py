"""Conversion of arbitrary message content to data that can be sent as JSON in UTF-8."""

from __future__ import annotations

import math
import re
from typing import Any

_SURROGATE = re.compile("[\ud800-\udfff]")  # a lone surrogate has no UTF-8 encoding
_DEEPEST = 50


def plain_text(text: str) -> str:
    """Return a text with lone surrogates replaced by U+FFFD."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def plain_data(value: Any, depth: int = _DEEPEST) -> Any:
    """Return a copy of JSON-like data; values that JSON cannot represent become text."""
    if isinstance(value, str):
        return plain_text(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if depth and isinstance(value, dict):
        return {plain_text(str(key)): plain_data(item, depth - 1) for key, item in value.items()}
    if depth and isinstance(value, list | tuple):
        return [plain_data(item, depth - 1) for item in value]
    return plain_text(str(value)) if not isinstance(value, dict | list | tuple) else "…"
