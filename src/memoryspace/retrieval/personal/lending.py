"""Support of messages by the facts derived from them: they fit a question, or are superseded."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..catalogue import Catalogue
from ..ranking import Ranked
from ..ranking.profiles import Profiles
from ..vector_arm import VectorArm
from .asking import PersonalQuestion
from .facts import Facts, ParsedFact
from .matters import count
from .signals import Rarity

Floats = NDArray[np.float64]

_MATTER = 0.3  # what a fact on the requested matter gains, on the scale of a cosine
_MISSED = 0.3  # the factor for a fact on another matter
_OF_OTHERS = 0.2  # the factor for a fact about another person


class PersonalIndexes(Protocol):
    """The indexes of one memory that the second pass reads."""

    catalogue: Catalogue
    profiles: Profiles
    vectors: VectorArm


def lent(
    facts: Facts,
    ranked: Ranked,
    rows: NDArray[np.int64],
    question: PersonalQuestion,
    rarity: Rarity,
    memory: PersonalIndexes,
) -> tuple[Floats, dict[tuple[int, int], float]]:
    """Return the fit of each row's best true fact, and links between rows by superseded facts.

    A link leads from the message of a superseded fact to that of its successor. Its value is the
    fact's fit relative to the best fact of the same message.
    """
    if not len(facts):
        return np.zeros(len(rows)), {}
    at = {row: place for place, row in enumerate(rows.tolist())}
    derived = [facts.from_message(memory.catalogue.at(row)) for row in at]
    every = [fact for some in derived for fact in some]
    known = [facts.known(fact) for fact in every]
    near = _near(every, known, question, rarity, memory, ranked)
    fits = dict(zip(every, map(partial(_fit, question), known, near), strict=True))
    best = np.zeros(len(rows))
    links: dict[tuple[int, int], float] = {}
    for old, some in enumerate(derived):
        most = max((fits[fact] for fact in some), default=0.0)
        asked = {fact for fact in some if _is_asked(facts.known(fact), question)}
        still_holds = any(map(facts.holds, asked))  # then its other, superseded facts do not count
        for fact in some:
            if facts.holds(fact):
                best[old] = max(best[old], fits[fact])
            if not most or (still_holds and fact not in asked):
                continue
            for row in facts.successors(fact):
                if row in at and at[row] != old:
                    pair = (old, at[row])
                    fit = 1.0 if fact in asked else _MISSED
                    links[pair] = max(links.get(pair, 0.0), fit * fits[fact] / most)
    return best, links


def _is_asked(fact: ParsedFact, question: PersonalQuestion) -> bool:
    """Return whether a fact is exactly on the requested matter and person."""
    is_on = bool((fact.titled | fact.kin) & question.matters) or bool(
        fact.title and fact.title <= question.words
    )
    return is_on and _is_of_asked(question, fact)


def _fit(question: PersonalQuestion, fact: ParsedFact, near: float) -> float:
    """Return how well a fact fits a question: by vector, or else by words, and by matter."""
    on = count(fact.matters & question.matters) / max(1, count(question.matters))
    return (near + _MATTER * on) * (1.0 if _is_of_asked(question, fact) else _OF_OTHERS)


def _is_of_asked(question: PersonalQuestion, fact: ParsedFact) -> bool:
    """Return whether a fact is about the requested person: the user, or whom the question names."""
    if question.people:
        return not question.people.isdisjoint(fact.people)
    is_close = bool(fact.kin & question.matters)  # the husband's job shows that there is one
    return is_close or not (question.of_user and fact.is_of_others)


def _near(
    rows: Sequence[int],
    facts: Sequence[ParsedFact],
    question: PersonalQuestion,
    rarity: Rarity,
    memory: PersonalIndexes,
    ranked: Ranked,
) -> list[float]:
    index = memory.vectors.index
    if ranked.vector is not None and index is not None:
        cosines = index.vectors(np.array(rows, np.int64)) @ ranked.vector
        return [min(1.0, max(0.0, each)) for each in cosines.tolist()]
    total = sum(rarity[word] for word in question.words)
    if not total:
        return [0.0] * len(rows)
    return [sum([rarity[w] for w in question.words & each.words]) / total for each in facts]
