"""Types shared by the languages: a text, the expressions found in it, and a grammar of patterns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

from .days import Days, Yearly

_NAME = re.compile(r"\?P<\w+>")


class DatedText(NamedTuple):
    """A text, and when it was written."""

    original: str
    lower: str  # with every character at the same position
    today: int
    hour: int

    def before(self, at: int, most: int = 24) -> str:
        """Return the lower-case text right before a position."""
        return self.lower[max(0, at - most) : at]


class TimeMatch(NamedTuple):
    """An expression in a text, from ``at`` to before ``stop``, and the days it means."""

    at: int
    stop: int
    days: Days
    weekday: int | None = None  # for a weekday without its week
    in_year: Yearly | None = None  # for a date without its year


Match: TypeAlias = re.Match[str]
Resolve: TypeAlias = Callable[[Match, DatedText], TimeMatch | Days | None]


class Grammar:
    """Patterns with the rules that resolve them; at each position the first match wins.

    All patterns are tried in one pass, without group names; the one that matched is then matched
    alone for its groups. Patterns must have a bounded length, which makes the pass linear. ``gate``
    is a zero-width pattern that matches wherever one of the others can begin; it makes the pass
    fast.
    """

    def __init__(
        self, table: tuple[tuple[str, Resolve], ...], *, gate: str = "", flags: int = 0
    ) -> None:
        self._rules = [(re.compile(pattern, flags), resolve) for pattern, resolve in table]
        unnamed = [_NAME.sub("?:", pattern) for pattern, _ in table]
        self._any = re.compile(
            f"{gate}(?:{'|'.join(f'({pattern})' for pattern in unnamed)})", flags
        )

    def find(self, source: str, text: DatedText) -> Iterator[TimeMatch]:
        """Yield the resolved expressions in ``source``, which is the text in some spelling."""
        for match in self._any.finditer(source):
            assert match.lastindex is not None, "every pattern is a group"
            pattern, resolve = self._rules[match.lastindex - 1]
            parts = pattern.match(source, match.start())
            found = resolve(parts, text) if parts is not None else None
            if found is not None:
                yield found if isinstance(found, TimeMatch) else TimeMatch(*match.span(), found)


def lowered(text: str) -> str:
    """Return the text in lower case, with every character at the same position."""
    lower = text.lower()
    if len(lower) != len(text):  # an İ became two characters
        lower = text.replace("İ", "I").lower()
    return lower if lower.isascii() else lower.replace("’", "'")
