"""Parses a personal question: whose words it wants, about whom, on what, now or in the past."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from ..ranking import ParsedQuestion
from . import cues
from .clauses import telling_words
from .matters import NAME, matters_in
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
    measured: frozenset[str] = frozenset()  # "blood" in "blood type", in lower case
    is_of_user_or_not: bool = False  # "am I a vegan": what is true of others is no answer
    own: frozenset[str] = frozenset()  # what the user is called in it

    @property
    def of_user_alone(self) -> bool:
        """Whether it is about the user and nobody else."""
        return self.of_user and not self.people


def asked(
    question: ParsedQuestion,
    now: float,
    known: frozenset[str],
    aliases: Mapping[str, frozenset[str]],
    *,
    own: frozenset[str] = frozenset(),
    is_alone: bool = False,
) -> PersonalQuestion:
    """Parse a question further.

    ``known`` are the names that candidates mention, ``own`` those of the user. ``is_alone``: they
    mention nobody else, so that "she" is the user.
    """
    text = question.text
    past = tuple(
        (each.start.timestamp(), each.end.timestamp())
        for each in question.times
        if each.end.timestamp() <= now
    )
    of_assistant = _finds(cues.OF_ASSISTANT, text) and not _finds(cues.TO_ASSISTANT, text)
    is_present = not (past or of_assistant or _finds(cues.THEN, text))
    words = telling_words(text)
    called = _named(text, own)
    people = _people(text, known - own, aliases)
    is_meant = is_alone and not people and _finds(cues.SOMEBODY, text)
    return PersonalQuestion(
        words=words,
        matters=_matters(text, words),
        people=people,
        of_assistant=of_assistant,
        of_user=bool(called) or is_meant or _finds(cues.OF_USER, text),
        is_present=is_present,
        is_now=_finds(cues.AT_PRESENT, text),
        is_former=not (past or of_assistant) and _finds(cues.FORMER, text),
        past=past,
        wants=tuple(name for name, sign in _SORTS.items() if _finds(sign, text)),
        measured=frozenset(each.lower() for each in cues.MEASURED.findall(text)),
        is_of_user_or_not=not people and _finds(cues.WHETHER_I, text),
        own=called,
    )


_SORTS = {"place": cues.WHERE, "time": cues.WHEN, "number": cues.HOW_MANY, "name": cues.WHO}


def _matters(text: str, words: frozenset[str]) -> int:
    """Return the matters a question is about; "who am I" asks for a name, without the word."""
    found = matters_in(text, words)
    return found | (NAME if _finds(cues.WHO_I_AM, text) else 0)


def _people(
    text: str, known: frozenset[str], aliases: Mapping[str, frozenset[str]]
) -> frozenset[str]:
    """Return the people asked for. A name includes the relation it was mentioned with, and back."""
    found = relations_asked(text) | _named(text, known)
    return found.union(*(_others(each, aliases) for each in found))


def _named(text: str, known: frozenset[str]) -> frozenset[str]:
    """Return which of some names a question contains."""
    lowered = text.lower()
    words = frozenset(lowered.replace("'s", " ").replace("’s", " ").replace("?", " ").split())
    names = names_in(text) & known
    return names | {name for name in known if name in (words if name.isascii() else lowered)}


def _others(key: str, aliases: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Return the other names of a person; a relation leads to names only, not to relations."""
    known = aliases.get(key, frozenset())
    return known - RELATIONS if key in RELATIONS else known


def _finds(pattern: re.Pattern[str], text: str) -> bool:
    return pattern.search(text) is not None
