"""Whatever a message holds, as data that can be sent: JSON in UTF-8, and nothing of its own."""

from __future__ import annotations

import math
import re
from typing import Any

_HALF_SIGN = re.compile("[\ud800-\udfff]")  # half of a surrogate pair has no UTF-8
_DEEPEST = 50


def plain_text(text: str) -> str:
    """Return a text as it can be sent; halves of signs become the sign for an unknown one."""
    return text if text.isascii() else _HALF_SIGN.sub("\ufffd", text)


def plain_data(value: Any, depth: int = _DEEPEST) -> Any:
    """Return a copy of JSON-like data in which all is JSON; what is none becomes text."""
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
