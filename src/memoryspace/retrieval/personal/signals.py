"""What a second look sees in a candidate: each signal says one thing, in words a user understands.

Signals are arrays over the candidates, from -1 to 1 or so. What they count is data
(``weights.json``); what they mean is told in the documentation under the same names.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from . import cues
from .asking import PersonalQuestion
from .clauses import Clause, Reading
from .matters import count
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
_TELLS = {
    "place": cues.PLACE,
    "time": cues.DATE,
    "number": cues.NUMBER,
}


class Candidates(Struct, frozen=True):
    """What is known of the candidates before they are read, in the order of their rows."""

    texts: Sequence[str]
    by_user: NDArray[np.bool_]
    times: Floats
    ages: Floats  # from 0, the oldest entry of the memory, to 1, the newest
    words: Floats  # by BM25
    cosines: Floats
    with_question: Floats  # words of it and of what it answers, as a share of the best
    facts: Floats  # how well what is known from it fits the question, from 0 to 1
    readings: Sequence[Reading]


def signals(
    question: PersonalQuestion, candidates: Candidates, rarity: Mapping[str, float]
) -> Signals:
    """Return every signal; ``rarity`` of the question's words is from 0 to 1."""
    fits = [_fit(question, each, rarity) for each in candidates.readings]
    by_user = np.where(candidates.by_user, 1.0, -1.0)
    found = {
        "words": candidates.words / _WORDS,
        "most words": share(candidates.words, 0.0),
        "meaning": candidates.cosines,
        "nearest meaning": share(candidates.cosines, _NEAR),
        "the user's words": by_user * (not question.of_assistant),
        "the assistant's words": -by_user * question.of_assistant,
        "answers what was asked": candidates.with_question * (by_user < 0) * question.of_assistant,
        "about the user": _column(fits, "own") * question.of_user_alone,
        "about who is asked for": _column(fits, "named") * bool(question.people),
        "same matter": _column(fits, "matter"),
        "only supposed": _column(fits, "supposed"),
        "length": np.minimum(1.0, np.array([len(each) for each in candidates.texts]) / _LONG),
        "known fact": candidates.facts,
    }
    return found | _answering(question, candidates) | _timely(question, candidates)


def share(values: Floats, least: float) -> Floats:
    """Values as a share of the greatest, none below 0."""
    most = max(float(values.max(initial=0.0)), least, 1e-9)
    return np.maximum(values, 0.0) / most


class _Fit(Struct, frozen=True):
    own: float = (
        0.0  # from -1, all of it about others, to 1, about the user; the telling part counts
    )
    named: float = 0.0  # 1 if who is asked for is its subject, half if named
    matter: float = 0.0
    supposed: float = 0.0


def _fit(question: PersonalQuestion, reading: Reading, rarity: Mapping[str, float]) -> _Fit:
    """Weigh the clauses by what they have of the question, and see whom these are about."""
    if not reading.clauses:
        return _Fit()
    total = sum(rarity.values())
    asked = max(1, count(question.matters))
    own = named = matter = weights = 0.0
    best, supposed = -1.0, 0.0
    for clause in reading.clauses:
        covered = sum(rarity.get(word, 0.0) for word in clause.words) / total if total else 0.0
        on = count(clause.matters & question.matters) / asked
        weight = covered + on / 2 + _BESIDE
        own += weight if USER in clause.about else -weight
        weights += weight
        matter = max(matter, on)
        named = max(named, _named(question, clause))
        if weight > best:
            best, supposed = weight, float(clause.is_supposed)
    return _Fit(own / weights, named, matter, supposed)


def _named(question: PersonalQuestion, clause: Clause) -> float:
    return float(not question.people.isdisjoint(clause.about)) + 0.5 * float(
        not question.people.isdisjoint(clause.names)
    )


def _column(fits: Sequence[_Fit], name: str) -> Floats:
    return np.array([getattr(each, name) for each in fits], np.float64)


def _answering(question: PersonalQuestion, candidates: Candidates) -> Signals:
    """Whether a candidate tells the sort of thing that is asked for."""
    found = {
        f"tells a {sort}": np.array(
            [sign.search(each) is not None for each in candidates.texts], np.float64
        )
        for sort, sign in _TELLS.items()
        if sort in question.wants
    }
    if "name" in question.wants:
        found["tells a name"] = np.array(
            [bool(each.names) for each in candidates.readings], np.float64
        )
    return found


def _timely(question: PersonalQuestion, candidates: Candidates) -> Signals:
    if question.past:
        return _then(question.past, candidates.times)
    if not question.is_now:
        return {}
    changed = np.array([bool(each.changes) for each in candidates.readings], np.float64)
    return {
        "newest": candidates.ages,
        "tells a change": changed * question.is_present,
    }


def _then(periods: Sequence[tuple[float, float]], times: Floats) -> Signals:
    """What was said in a period counts, what was said before it by half, later against it."""
    during, after = np.zeros(len(times)), np.zeros(len(times))
    for start, end in periods:
        during = np.maximum(during, np.where((times >= start) & (times < end), 1.0, 0.0))
        during = np.maximum(during, np.where(times < start, 0.5, 0.0))
        after = np.maximum(after, np.where(times >= end, 1.0, 0.0))
    return {"of that time": during, "after that time": after}


def rarity_of(readings: Sequence[Reading]) -> dict[str, float]:
    """Return how rare each word of some readings is among them, from near 0 to 1."""
    counts = Counter(word for each in readings for word in each.words)
    most = math.log(1 + len(readings))
    return {word: math.log(1 + len(readings) / (1 + n)) / most for word, n in counts.items()}
