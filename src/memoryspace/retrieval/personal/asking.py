"""Parses a personal question: whose words it wants, about whom, on what, now or in the past."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from ..ranking import ParsedQuestion
from . import cues
from .clauses import telling_words
from .matters import matters_in
from .people import RELATIONS, names_in, relations_asked


class PersonalQuestion(Struct, frozen=True):
    """A parsed personal question. ``people`` are keys of relations and names, with aliases."""

    words: frozenset[str]
    matters: int
    people: frozenset[str]
    of_assistant: bool
    of_user: bool
    is_present: bool  # it asks for the present state, or names no time
    is_now: bool  # it says so, by "now" or "still"
    is_former: bool  # it asks for a former state, without a date
    past: tuple[tuple[float, float], ...]  # past periods that it names
    wants: tuple[str, ...]  # the kinds of answers: see ``signals``

    @property
    def of_user_alone(self) -> bool:
        """Whether it is about the user and nobody else."""
        return self.of_user and not self.people


def asked(
    question: ParsedQuestion,
    now: float,
    known: frozenset[str],
    aliases: Mapping[str, frozenset[str]],
) -> PersonalQuestion:
    """Parse a question further; ``known`` are the names that candidates mention."""
    text = question.text
    past = tuple(
        (each.start.timestamp(), each.end.timestamp())
        for each in question.times
        if each.end.timestamp() <= now
    )
    of_assistant = _finds(cues.OF_ASSISTANT, text) and not _finds(cues.TO_ASSISTANT, text)
    is_present = not (past or of_assistant or _finds(cues.THEN, text))
    words = telling_words(text)
    return PersonalQuestion(
        words=words,
        matters=matters_in(text, words),
        people=_people(text, known, aliases),
        of_assistant=of_assistant,
        of_user=_finds(cues.OF_USER, text),
        is_present=is_present,
        is_now=_finds(cues.AT_PRESENT, text),
        is_former=not (past or of_assistant) and _finds(cues.FORMER, text),
        past=past,
        wants=tuple(name for name, sign in _SORTS.items() if _finds(sign, text)),
    )


_SORTS = {"place": cues.WHERE, "time": cues.WHEN, "number": cues.HOW_MANY, "name": cues.WHO}


def _people(
    text: str, known: frozenset[str], aliases: Mapping[str, frozenset[str]]
) -> frozenset[str]:
    """Return the people asked for. A name includes the relation it was mentioned with, and back."""
    lowered = text.lower()
    words = frozenset(lowered.replace("'s", " ").replace("’s", " ").replace("?", " ").split())
    names = names_in(text) & known
    names |= {name for name in known if name in (words if name.isascii() else lowered)}
    found = relations_asked(text) | names
    return found.union(*(_others(each, aliases) for each in found))


def _others(key: str, aliases: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Return the other names of a person; a relation leads to names only, not to relations."""
    known = aliases.get(key, frozenset())
    return known - RELATIONS if key in RELATIONS else known


def _finds(pattern: re.Pattern[str], text: str) -> bool:
    return pattern.search(text) is not None
