"""Row types shared by the English and Chinese pattern tables: matters and exact values."""

from __future__ import annotations

import re
from typing import NamedTuple


class Matter(NamedTuple):
    """An area of life. ``turns`` matches words that express a change of it."""

    name: str
    words: re.Pattern[str]
    turns: re.Pattern[str] | None = None


class ValueRow(NamedTuple):
    """A pattern for ``attribute``. ``own`` restricts it to "my … is", by the words after "my"."""

    pattern: re.Pattern[str]
    attribute: str
    polarity: int = 1
    ended: bool = False
    change: bool = False
    is_list: bool = False
    own: re.Pattern[str] | None = None


def row(
    pattern: str,
    attribute: str,
    *,
    polarity: int = 1,
    ended: bool = False,
    change: bool = False,
    is_list: bool = False,
) -> ValueRow:
    """Return a row, given its pattern as text."""
    return ValueRow(re.compile(pattern), attribute, polarity, ended, change, is_list)


def either(lines: str) -> str:
    """Return alternatives, separated by bars or line breaks, as one regex group."""
    parts = [part.strip("| ") for line in lines.splitlines() for part in line.split(" | ")]
    return f"(?:{'|'.join(part for part in parts if part)})"
