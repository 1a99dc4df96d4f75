"""What a second look sees in a candidate: each signal says one thing, in words a user understands.

Signals are arrays over the candidates, from -1 to 1 or so. What they count is data
(``weights.json``); what they mean is told in the documentation under the same names.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from . import cues
from .asking import PersonalQuestion
from .clauses import Clause, Reading
from .matters import count
from .messages import Message
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
_WORDS = 10.0  # a score by words that is a good one
_NEAR = 0.1  # cosine: who is best by less is not much of a best
_BESIDE = 0.02  # what a clause weighs that has nothing of the question
_TELLS = {"place": cues.TELLS_PLACE, "time": cues.TELLS_TIME, "number": cues.TELLS_NUMBER}


class Candidates(Struct, frozen=True):
    """What is known of the candidates, in the order of their rows."""

    messages: Sequence[Message]
    times: Floats
    ages: Floats  # tell the order in which they came
    newness: Floats  # from 0, the oldest entry of the memory, to 1, the newest; where it is asked
    words: Floats  # by BM25
    cosines: Floats
    with_question: Floats  # words of it and of what it answers, as a share of the best; likewise
    facts: Floats  # how well what is known from it fits the question, from 0 to 1


class Rarity:
    """How rare words are among some messages, from near 0 to 1: counted when asked for."""

    def __init__(self, messages: Sequence[Message]) -> None:
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


def signals(question: PersonalQuestion, candidates: Candidates, rarity: Rarity) -> Signals:
    """Return every signal that the question asks for."""
    messages = candidates.messages
    fits = np.array(list(map(_Fit(question, rarity), messages))).T
    found = {
        "words": candidates.words / _WORDS,
        "most words": share(candidates.words, 0.0),
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


def _said_by(question: PersonalQuestion, candidates: Candidates) -> Signals:
    """Whose words are asked for."""
    by_user = np.array([1.0 if each.is_users else -1.0 for each in candidates.messages])
    if not question.of_assistant:
        return {"the user's words": by_user}
    return {
        "the assistant's words": -by_user,
        "answers what was asked": candidates.with_question * (by_user < 0),
    }


def share(values: Floats, least: float) -> Floats:
    """Values as a share of the greatest, none below 0."""
    most = max(float(values.max(initial=0.0)), least, 1e-9)
    return np.maximum(values, 0.0) / most


class _Fit:
    """How a message fits a question: the clauses count by what they have of it.

    Called with a message, it returns whom these are about (from -1, others, to 1, the user),
    whether who is asked for is its subject (1; half if named), the share of the matters asked for,
    and whether the telling clause is only supposed.
    """

    def __init__(self, question: PersonalQuestion, rarity: Rarity) -> None:
        self._question = question
        self._worth = {word: rarity[word] for word in question.words}
        self._total = sum(self._worth.values())
        self._asked = max(1, count(question.matters))

    def __call__(self, message: Message) -> tuple[float, float, float, float]:
        reading, question = message.reading, self._question
        if not reading.clauses:
            return 0.0, 0.0, 0.0, 0.0
        own, supposed = reading.own, 0.0
        if reading.is_supposed or (-1 < own < 1 and question.of_user_alone):
            own, supposed = self._weighed(reading)
        named = 0.0 if question.people.isdisjoint(reading.people) else self._named(reading)
        matter = self._matter(reading) if question.matters & reading.matters else 0.0
        return own, named, matter, supposed

    def _weighed(self, reading: Reading) -> tuple[float, float]:
        """Return whom a message is about, and whether it is only supposed: what tells counts."""
        weights = [self._weight(each) for each in reading.clauses]
        telling = reading.clauses[weights.index(max(weights))]
        own = sum(map(_signed, reading.clauses, weights)) / sum(weights)
        return own, float(telling.is_supposed)

    def _weight(self, clause: Clause) -> float:
        weight, question = _BESIDE, self._question
        if clause.matters & question.matters:
            weight += count(clause.matters & question.matters) / self._asked / 2
        if self._total and not question.words.isdisjoint(clause.words):
            shared = question.words & clause.words
            weight += sum([self._worth[word] for word in shared]) / self._total
        return weight

    def _matter(self, reading: Reading) -> float:
        asked = self._question.matters
        most = max([count(each.matters & asked) for each in reading.clauses])
        return most / self._asked

    def _named(self, reading: Reading) -> float:
        people = self._question.people
        return max(
            (not people.isdisjoint(each.about)) + 0.5 * (not people.isdisjoint(each.names))
            for each in reading.clauses
        )


def _signed(clause: Clause, weight: float) -> float:
    return weight if USER in clause.about else -weight


def _answering(question: PersonalQuestion, messages: Sequence[Message]) -> Signals:
    """Whether a candidate tells the sort of thing that is asked for."""
    found = {
        f"tells a {sort}": np.array([bool(each.tells & sign) for each in messages], np.float64)
        for sort, sign in _TELLS.items()
        if sort in question.wants
    }
    if "name" in question.wants:
        named = [bool(each.reading.names) for each in messages]
        found["tells a name"] = np.array(named, np.float64)
    return found


def _timely(question: PersonalQuestion, candidates: Candidates) -> Signals:
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
    """What was said in a period counts, what was said before it by half, later against it."""
    during, after = np.zeros(len(times)), np.zeros(len(times))
    for start, end in periods:
        during = np.maximum(during, np.where((times >= start) & (times < end), 1.0, 0.0))
        during = np.maximum(during, np.where(times < start, 0.5, 0.0))
        after = np.maximum(after, np.where(times >= end, 1.0, 0.0))
    return {"of that time": during, "after that time": after}
