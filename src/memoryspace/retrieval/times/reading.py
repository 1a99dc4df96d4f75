"""What the languages share: a text to be read, and what was found in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

from .days import Days, Yearly

_NAME = re.compile(r"\?P<\w+>")


class Text(NamedTuple):
    """A text, and when it was written."""

    original: str
    lower: str  # every character in its place
    today: int
    hour: int

    def before(self, at: int, most: int = 24) -> str:
        """Return the lower-case text that leads up to a position."""
        return self.lower[max(0, at - most) : at]


class Found(NamedTuple):
    """An expression in a text, from ``at`` to before ``stop``, and the days it means."""

    at: int
    stop: int
    days: Days
    weekday: int | None = None  # of a weekday whose week was not said
    in_year: Yearly | None = None  # of a date whose year was not said


Match: TypeAlias = re.Match[str]
Resolve: TypeAlias = Callable[[Match, Text], Found | Days | None]


class Grammar:
    """Patterns with the rules that resolve them; the first that matches at a place wins.

    All patterns are tried in one pass, without their names; the one that matched is then matched
    by itself for its parts. The patterns must be of bounded length: then a pass is linear.
    ``gate`` is a pattern of no length that holds wherever one of the others begins: it makes the
    pass quick.
    """

    def __init__(
        self, table: tuple[tuple[str, Resolve], ...], *, gate: str = "", flags: int = 0
    ) -> None:
        self._rules = [(re.compile(pattern, flags), resolve) for pattern, resolve in table]
        unnamed = [_NAME.sub("?:", pattern) for pattern, _ in table]
        self._any = re.compile(
            f"{gate}(?:{'|'.join(f'({pattern})' for pattern in unnamed)})", flags
        )

    def find(self, source: str, text: Text) -> Iterator[Found]:
        """Yield what is resolved in the source, which is the text in some spelling."""
        for match in self._any.finditer(source):
            assert match.lastindex is not None, "every pattern is a group"
            pattern, resolve = self._rules[match.lastindex - 1]
            parts = pattern.match(source, match.start())
            found = resolve(parts, text) if parts is not None else None
            if found is not None:
                yield found if isinstance(found, Found) else Found(*match.span(), found)


def lowered(text: str) -> str:
    """Return the text in lower case, with every character in its place."""
    lower = text.lower()
    if len(lower) != len(text):  # an İ became two characters
        lower = text.replace("İ", "I").lower()
    return lower if lower.isascii() else lower.replace("’", "'")
