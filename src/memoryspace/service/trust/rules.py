"""``Rule``: one kind of wording that gives instructions to a model.

A rule is tried only if one of its ``stems`` occurs in the text, which is rare. Patterns are verbose
regular expressions over normalized text, in which ``_`` stands for a separator between two words
and ``~`` for a few words of the same sentence. Every repetition is bounded, so that the running
time is linear for any input.
"""

from __future__ import annotations

import re

from msgspec import Struct

_BETWEEN_WORDS = r"[^\w.!?。！？]{1,4}"
_A_FEW_WORDS = r"[^.!?。！？\n]{0,40}?"

DEVELOPERS = frozenset({"system"})  # a system prompt may say who the model is


class Rule(Struct, frozen=True, kw_only=True):
    """One kind of instruction. ``is_talk``: people may also report or quote such words."""

    name: str
    stems: tuple[str, ...]
    pattern: re.Pattern[str]
    is_talk: bool = True
    not_from: frozenset[str] = frozenset()  # roles that may say this


def rule(name: str, stems: str, pattern: str, *, not_from: frozenset[str] = frozenset()) -> Rule:
    """Return a rule about wording; ``stems`` are separated by commas."""
    text = pattern.replace("_", _BETWEEN_WORDS).replace("~", _A_FEW_WORDS)
    return Rule(
        name=name,
        stems=tuple(stem.strip() for stem in stems.split(",")),
        pattern=re.compile(text, re.MULTILINE | re.VERBOSE),
        not_from=not_from,
    )


def marker(name: str, stems: str, pattern: str) -> Rule:
    """Return a rule about mark-up. Its pattern is an ordinary regular expression."""
    compiled = re.compile(pattern, re.MULTILINE | re.VERBOSE)
    return Rule(name=name, stems=tuple(stems.split()), pattern=compiled, is_talk=False)
