"""What facts lend the messages they came from: that these fit a question, or no longer hold."""

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
from .facts import Facts, Known
from .matters import count
from .signals import Rarity

Floats = NDArray[np.float64]

_MATTER = 0.3  # what it counts that a fact is on the matter asked for, beside a cosine
_MISSED = 0.3  # what a fact counts that is on another matter than the one asked for
_OF_OTHERS = 0.2  # what a fact counts that is about somebody else


class Memory(Protocol):
    """What is ranked."""

    catalogue: Catalogue
    profiles: Profiles
    vectors: VectorArm


def lent(
    facts: Facts,
    ranked: Ranked,
    rows: NDArray[np.int64],
    question: PersonalQuestion,
    rarity: Rarity,
    memory: Memory,
) -> tuple[Floats, dict[tuple[int, int], float]]:
    """Return how well the best fact of each row that holds fits; and which rows a fact that no
    longer holds leads from and to, with how well that fits beside others of the same row."""
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
        still_holds = any(map(facts.holds, asked))  # what else of it is over does not matter
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


def _is_asked(fact: Known, question: PersonalQuestion) -> bool:
    """Tell whether a fact is on the very thing that is asked for, and of whom."""
    is_on = bool(fact.titled & question.matters) or bool(
        fact.title and fact.title <= question.words
    )
    return is_on and _is_of_asked(question, fact)


def _fit(question: PersonalQuestion, fact: Known, near: float) -> float:
    """Return how well a fact fits a question: by meaning, or else by words; and by the matter."""
    on = count(fact.matters & question.matters) / max(1, count(question.matters))
    return (near + _MATTER * on) * (1.0 if _is_of_asked(question, fact) else _OF_OTHERS)


def _is_of_asked(question: PersonalQuestion, fact: Known) -> bool:
    """Tell whether a fact is about who is asked for: the user, or who is named."""
    if question.people:
        return not question.people.isdisjoint(fact.people)
    return not (question.of_user and fact.is_of_others)


def _near(
    rows: Sequence[int],
    facts: Sequence[Known],
    question: PersonalQuestion,
    rarity: Rarity,
    memory: Memory,
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
