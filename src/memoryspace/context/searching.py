"""Finding lines: case-insensitive words, ``|`` between alternatives, ``*`` for anything between.

No regular expressions: whatever the pattern, a text is gone through once for each alternative.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from ..errors import InvalidInput
from .rendering import LONGEST_LINE

_MOST_ALTERNATIVES = 50
_LONGEST_PATTERN = 1000


class Found(NamedTuple):
    """A line that matches, with its number as a reader counts."""

    number: int
    line: str


class Pattern:
    """What to look for. ``InvalidInput`` if that is nothing, or too much."""

    def __init__(self, text: str) -> None:
        if not isinstance(text, str) or len(text) > _LONGEST_PATTERN:
            raise InvalidInput(f"a pattern is a text of at most {_LONGEST_PATTERN} characters")
        pieces = [_pieces(alternative) for alternative in text.split("|")]
        self._alternatives = [each for each in pieces if each]
        if not 0 < len(self._alternatives) <= _MOST_ALTERNATIVES:
            raise InvalidInput(
                f"a pattern has 1 to {_MOST_ALTERNATIVES} alternatives with at least one letter"
            )

    def find_in(self, text: str) -> Iterator[Found]:
        """Yield the lines of a text that match, with the piece of a long line where it does."""
        folded = _folded(text)
        if not any(all(piece in folded for piece in each) for each in self._alternatives):
            return
        number = 1
        for line, low in zip(text.split("\n"), folded.split("\n"), strict=True):
            at = self._place(low)
            if at >= 0:
                piece = min(at, max(0, len(line) - 1)) // LONGEST_LINE
                start = piece * LONGEST_LINE
                yield Found(number + piece, line[start : start + LONGEST_LINE])
            number += max(1, -(-len(line) // LONGEST_LINE))

    def _place(self, line: str) -> int:
        """Return where the first alternative that matches begins; -1 if none does."""
        for pieces in self._alternatives:
            first = at = line.find(pieces[0])
            for before, piece in pairwise(pieces):
                at = line.find(piece, at + len(before)) if at >= 0 else -1
            if at >= 0:
                return first
        return -1


def _pieces(alternative: str) -> list[str]:
    return [_folded(piece) for piece in alternative.strip().split("*") if piece]


def _folded(text: str) -> str:
    """Lower case, with the same line ends."""
    return text.casefold()
