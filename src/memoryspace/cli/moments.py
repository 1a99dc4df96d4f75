"""Moments and other values as people type them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ..errors import InvalidInput


def moment_of(text: str) -> int | str:
    """Return a moment: digits are the number of a change, anything else is a time."""
    return int(text) if text.isascii() and text.isdigit() else text


def object_in(what: str, text: str | None) -> Mapping[str, Any] | None:
    """Return the JSON object in a text."""
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError) as error:
        raise InvalidInput(f"{what} must be a JSON object: {error}") from None
