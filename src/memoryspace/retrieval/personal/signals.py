"""The signals of the second pass: how well a candidate fits a personal question.

Signals are arrays over the candidates, with values of about -1 to 1. Their weights are data
(``weights.json``). Their names are part of the documentation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from . import cues
from .asking import PersonalQuestion
from .clauses import MessageClause, MessageReading
from .matters import count
from .messages import ReadMessage
from .people import USER

Floats = NDArray[np.float64]
Signals = dict[str, Floats]

SIGNALS = (
    *("words", "most words", "meaning", "nearest meaning"),
    *("the user's words", "the assistant's words", "answers what was asked"),
    *("about the user", "about who is asked for", "same matter", "only supposed"),
    *("tells a place", "tells a time", "tells a number", "tells a name", "length"),
    *("of that time", "after that time", "newest", "tells a change", "known fact"),
)

_LONG = 200.0  # characters
_WORDS = 10.0  # a good BM25 score
_NEAR = 0.1  # the least cosine by which the nearest is scaled
_BESIDE = 0.02  # weight of a clause that shares nothing with the question
_TELLS = {"place": cues.TELLS_PLACE, "time": cues.TELLS_TIME, "number": cues.TELLS_NUMBER}


class PersonalCandidates(Struct, frozen=True):
    """The candidates as columns, all in the same order."""

    messages: Sequence[ReadMessage]
    times: Floats
    ages: Floats  # the order of adding
    newness: Floats  # from 0, the oldest entry of the memory, to 1, the newest; if needed
    words: Floats  # BM25 scores
    cosines: Floats
    with_question: Floats  # word score with the message it answers, as a share of best; if needed
    facts: Floats  # how well the facts derived from it fit the question, from 0 to 1


class Rarity:
    """The rarity of words among some messages, from near 0 to 1; computed on demand."""

    def __init__(self, messages: Sequence[ReadMessage]) -> None:
        self._texts = [each.reading.words for each in messages]
        self._most = math.log(1 + len(messages))
        self._known: dict[str, float] = {}

    def __getitem__(self, word: str) -> float:
        found = self._known.get(word)
        if found is None:
            n = sum([word in each for each in self._texts])
            found = math.log(1 + len(self._texts) / (1 + n)) / self._most
            self._known[word] = found
        return found


def signals(question: PersonalQuestion, candidates: PersonalCandidates, rarity: Rarity) -> Signals:
    """Return all signals that apply to the question."""
    messages = candidates.messages
    fits = np.array(list(map(_Fit(question, rarity), messages))).T
    words = candidates.words if question.words else np.zeros(len(messages))  # of "who am I" none
    found = {
        "words": words / _WORDS,
        "most words": share(words, 0.0),
        "meaning": candidates.cosines,
        "nearest meaning": share(candidates.cosines, _NEAR),
        "same matter": fits[2],
        "only supposed": fits[3],
        "length": np.minimum(1.0, np.array([each.length for each in messages]) / _LONG),
        "known fact": candidates.facts,
    }
    if question.of_user_alone:
        found["about the user"] = fits[0]
    if question.people:
        found["about who is asked for"] = fits[1]
    return (
        found
        | _said_by(question, candidates)
        | _answering(question, messages)
        | _timely(question, candidates)
    )


def _said_by(question: PersonalQuestion, candidates: PersonalCandidates) -> Signals:
    """Return the signals for whose words the question asks for."""
    by_user = np.array([1.0 if each.is_users else -1.0 for each in candidates.messages])
    if not question.of_assistant:
        return {"the user's words": by_user}
    return {
        "the assistant's words": -by_user,
        "answers what was asked": candidates.with_question * (by_user < 0),
    }


def share(values: Floats, least: float) -> Floats:
    """Return values as a share of the greatest (at least ``least``), none below 0."""
    most = max(float(values.max(initial=0.0)), least, 1e-9)
    return np.maximum(values, 0.0) / most


class _Fit:
    """Measures how a message fits a question; clauses count by what they share with it.

    A call returns four numbers: whom the message is about (from -1, others, to 1, the user),
    whether the person asked for is its subject (1; half if only named), the share of the requested
    matters it touches, and whether its best clause is only supposed.
    """

    def __init__(self, question: PersonalQuestion, rarity: Rarity) -> None:
        self._question = question
        self._worth = {word: rarity[word] for word in question.words}
        self._total = sum(self._worth.values())
        self._asked = max(1, count(question.matters))

    def __call__(self, message: ReadMessage) -> tuple[float, float, float, float]:
        reading, question = message.reading, self._question
        if not reading.clauses:
            return 0.0, 0.0, 0.0, 0.0
        own, supposed = reading.own, 0.0
        if reading.is_supposed or (-1 < own < 1 and question.of_user_alone):
            own, supposed = self._weighed(reading)
        named = 0.0 if question.people.isdisjoint(reading.people) else self._named(reading)
        matter = self._matter(reading) if question.matters & reading.matters else 0.0
        return own, named, matter, supposed

    def _weighed(self, reading: MessageReading) -> tuple[float, float]:
        """Return whom a message is about, by weighted clauses, and whether the best is supposed."""
        weights = [self._weight(each) for each in reading.clauses]
        best = reading.clauses[weights.index(max(weights))]
        own = sum(map(_signed, reading.clauses, weights)) / sum(weights)
        return own, float(best.is_supposed)

    def _weight(self, clause: MessageClause) -> float:
        weight, question = _BESIDE, self._question
        if clause.matters & question.matters:
            weight += count(clause.matters & question.matters) / self._asked / 2
        if self._total and not question.words.isdisjoint(clause.words):
            shared = question.words & clause.words
            weight += sum([self._worth[word] for word in shared]) / self._total
        return weight

    def _matter(self, reading: MessageReading) -> float:
        asked = self._question.matters
        most = max([count(each.matters & asked) for each in reading.clauses])
        return most / self._asked

    def _named(self, reading: MessageReading) -> float:
        people = self._question.people
        return max(
            (not people.isdisjoint(each.about)) + 0.5 * (not people.isdisjoint(each.names))
            for each in reading.clauses
        )


def _signed(clause: MessageClause, weight: float) -> float:
    return weight if USER in clause.about else -weight


def _answering(question: PersonalQuestion, messages: Sequence[ReadMessage]) -> Signals:
    """Return the signals for candidates that tell the kind of thing asked for."""
    found = {
        f"tells a {sort}": np.array([bool(each.tells & sign) for each in messages], np.float64)
        for sort, sign in _TELLS.items()
        if sort in question.wants
    }
    if "name" in question.wants:
        named = [bool(each.reading.names) for each in messages]
        found["tells a name"] = np.array(named, np.float64)
    return found


def _timely(question: PersonalQuestion, candidates: PersonalCandidates) -> Signals:
    if question.past:
        return _then(question.past, candidates.times)
    if not question.is_now:
        return {}
    found = {"newest": candidates.newness}
    if question.is_present:
        changed = [bool(each.reading.changes) for each in candidates.messages]
        found["tells a change"] = np.array(changed, np.float64)
    return found


def _then(periods: Sequence[tuple[float, float]], times: Floats) -> Signals:
    """Return signals for a past period: 1 during it, half before it; a second one for after it."""
    during, after = np.zeros(len(times)), np.zeros(len(times))
    for start, end in periods:
        during = np.maximum(during, np.where((times >= start) & (times < end), 1.0, 0.0))
        during = np.maximum(during, np.where(times < start, 0.5, 0.0))
        after = np.maximum(after, np.where(times >= end, 1.0, 0.0))
    return {"of that time": during, "after that time": after}
