"""``Rule``: a row of the tables of what English clauses state.

A row sees a predicate in lower case ("'m a nurse", "works at the mill"); ``v`` is the value.
The first row that matches wins, so what says more stands above.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from .personal_english_parts import SHORT
from .personal_english_words import EMPTY, NO_WORK, THE_KNOWN


class Rule(NamedTuple):
    """A row: what matches states ``attribute`` of somebody."""

    pattern: re.Pattern[str]
    attribute: str
    polarity: int = 1
    ended: bool = False
    change: bool = False
    is_list: bool = False
    check: Callable[[str], bool] | None = None  # of the value
    own: re.Pattern[str] | None = None  # for "my … is": which "my …" it is for

    def takes(self, value: str, own: str | None) -> bool:
        """Tell whether a value is meant, of "my …" if something is ``own``."""
        if (self.own is None) is not (own is None):
            return False
        if self.own is not None and own is not None and self.own.fullmatch(own) is None:
            return False
        value = value.strip(" ,")
        return EMPTY.fullmatch(value) is None and (self.check is None or self.check(value))

    def attribute_for(self, own: str | None) -> str:
        """Return the attribute's name; ``*`` stands for what stands before "is"."""
        return self.attribute if own is None else self.attribute.replace("*", own)


def rule(
    pattern: str,
    attribute: str,
    *,
    polarity: int = 1,
    ended: bool = False,
    change: bool = False,
    is_list: bool = False,
    check: Callable[[str], bool] | None = None,
) -> Rule:
    """Return a row whose pattern is written as a text."""
    return Rule(re.compile(pattern), attribute, polarity, ended, change, is_list, check)


def likes(pattern: str, *, polarity: int = 1, ended: bool = False, change: bool = False) -> Rule:
    """Return a row about a taste; values are lists."""
    return rule(
        pattern,
        "likes",
        polarity=polarity,
        ended=ended,
        change=change,
        is_list=True,
        check=is_taste,
    )


def own_rule(
    words: str,
    attribute: str,
    *,
    value: str = SHORT,
    is_list: bool = False,
    check: Callable[[str], bool] | None = None,
) -> Rule:
    """Return a row for "my … is", for these words after "my"."""
    pattern = re.compile(rf"(?:is|are)\s(?:called\s|named\s|on\s)?{value}")
    return Rule(pattern, attribute, is_list=is_list, check=check, own=re.compile(words))


def is_work(value: str) -> bool:
    """Tell whether somebody can be this for a living."""
    return NO_WORK.search(value) is None


def is_taste(value: str) -> bool:
    """Tell whether one can like this in general, not just \"the plot\"."""
    return THE_KNOWN.fullmatch(value) is None
