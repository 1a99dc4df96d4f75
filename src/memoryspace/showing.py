"""Results as small tables of plain text, for people at a prompt."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime

_GAP = "  "
_CUT = "…"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int]) -> str:
    """Return rows under their heads; a cell wider than its column's width is cut, with a mark."""
    cells = [
        [shortened(cell, most) for cell, most in zip(row, widths, strict=True)] for row in rows
    ]
    lines = [list(heads), *cells]
    columns = [max(width_of(line[at]) for line in lines) for at in range(len(heads))]
    return "\n".join(_line(line, columns) for line in lines)


def shortened(text: str, most: int) -> str:
    """Return a text on one line, at most so many columns wide."""
    flat = "".join(each if each.isprintable() else " " for each in " ".join(text.split()))
    if width_of(flat) <= most:
        return flat
    used = kept = 0
    for each in flat:
        used += width_of(each)
        if used > most - 1:
            break
        kept += 1
    return flat[:kept].rstrip() + _CUT


def width_of(text: str) -> int:
    """Return how many columns a terminal needs: a Chinese character takes two."""
    if text.isascii():
        return len(text)
    return sum(_columns(each) for each in text)


def day(when: float) -> str:
    """Return the day of a time, in UTC; "" for one that no calendar has."""
    try:
        return datetime.fromtimestamp(when, UTC).strftime("%Y-%m-%d")
    except (ValueError, OverflowError, OSError):
        return ""


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _line(cells: Sequence[str], columns: Sequence[int]) -> str:
    padded = (
        cell + " " * (wide - width_of(cell)) for cell, wide in zip(cells, columns, strict=True)
    )
    return _GAP.join(padded).rstrip()
