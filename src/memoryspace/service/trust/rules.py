"""``Rule``: one way in which text gives orders to a model, and how its pattern is written.

A rule is tried only where one of its ``stems`` occurs, which most text never has. Patterns are
verbose regular expressions over cleaned text, in which ``_`` stands for what may separate two
words and ``~`` for a few words of the same sentence. Every repetition is bounded, so that the time
taken is linear in the text, however it was made up.
"""

from __future__ import annotations

import re

from msgspec import Struct

_BETWEEN_WORDS = r"[^\w.!?。！？]{1,4}"
_A_FEW_WORDS = r"[^.!?。！？\n]{0,40}?"

DEVELOPERS = frozenset({"system"})  # a system prompt does say who the model is


class Rule(Struct, frozen=True, kw_only=True):
    """One way of giving orders. ``is_talk``: people may also report or quote such words."""

    name: str
    stems: tuple[str, ...]
    pattern: re.Pattern[str]
    is_talk: bool = True
    not_from: frozenset[str] = frozenset()  # roles that say such things by right


def rule(name: str, stems: str, pattern: str, *, not_from: frozenset[str] = frozenset()) -> Rule:
    """Return a rule on wording; ``stems`` are separated by commas."""
    text = pattern.replace("_", _BETWEEN_WORDS).replace("~", _A_FEW_WORDS)
    return Rule(
        name=name,
        stems=tuple(stem.strip() for stem in stems.split(",")),
        pattern=re.compile(text, re.MULTILINE | re.VERBOSE),
        not_from=not_from,
    )


def marker(name: str, stems: str, pattern: str) -> Rule:
    """Return a rule on signs that nobody says: an ordinary regular expression, nothing replaced."""
    compiled = re.compile(pattern, re.MULTILINE | re.VERBOSE)
    return Rule(name=name, stems=tuple(stems.split()), pattern=compiled, is_talk=False)
