"""What facts lend the messages they came from: that these fit a question, or no longer hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..catalogue import Catalogue
from ..entries import Entry
from ..ranking import Ranked
from ..ranking.profiles import Profiles
from ..vector_arm import VectorArm
from .asking import PersonalQuestion
from .clauses import telling_words
from .facts import Facts
from .matters import count, matters_in
from .people import names_in, relations_in

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
    rarity: Mapping[str, float],
    memory: Memory,
) -> tuple[Floats, dict[tuple[int, int], float]]:
    """Return how well the best fact of each row that holds fits; and which rows a fact that no
    longer holds leads from and to, with how well that fits beside others of the same row."""
    at = {row: place for place, row in enumerate(rows.tolist())}
    derived = [facts.from_message(memory.catalogue.at(row)) for row in at]
    every = [fact for some in derived for fact in some]
    fits = dict(zip(every, _fits(every, question, rarity, memory, ranked), strict=True))
    best = np.zeros(len(rows))
    links: dict[tuple[int, int], float] = {}
    for old, some in enumerate(derived):
        most = max((fits[fact] for fact in some), default=0.0)
        for fact in some:
            if facts.holds(fact):
                best[old] = max(best[old], fits[fact])
            for row in facts.successors(fact) if most else ():
                if row in at and at[row] != old:
                    pair = (old, at[row])
                    fit = 1.0 if _is_asked(fact, question, memory) else _MISSED
                    links[pair] = max(links.get(pair, 0.0), fit * fits[fact] / most)
    return best, links


def _is_asked(fact: int, question: PersonalQuestion, memory: Memory) -> bool:
    """Tell whether a fact is on the very matter that is asked for, and of whom."""
    entry = memory.catalogue.at(fact)
    on = 0 if entry.title is None else matters_in(entry.title, telling_words(entry.title))
    return bool(on & question.matters) and _is_of_asked(question, entry.text)


def _fits(
    rows: Sequence[int],
    question: PersonalQuestion,
    rarity: Mapping[str, float],
    memory: Memory,
    ranked: Ranked,
) -> list[float]:
    """Return how well facts fit a question: by meaning, or else by words; and by the matter."""
    if not rows:
        return []
    entries = [memory.catalogue.at(row) for row in rows]
    near = _near(rows, entries, question, rarity, memory, ranked)
    asked = max(1, count(question.matters))
    return [
        (each + _MATTER * count(_matters_of(entry) & question.matters) / asked)
        * (1.0 if _is_of_asked(question, entry.text) else _OF_OTHERS)
        for each, entry in zip(near, entries, strict=True)
    ]


def _is_of_asked(question: PersonalQuestion, fact: str) -> bool:
    """Tell whether a fact is about who is asked for: the user, or who is named."""
    theirs = relations_in(fact)
    if question.people:
        return not question.people.isdisjoint(theirs | names_in(fact))
    return not (question.of_user and theirs)


def _near(
    rows: Sequence[int],
    entries: Sequence[Entry],
    question: PersonalQuestion,
    rarity: Mapping[str, float],
    memory: Memory,
    ranked: Ranked,
) -> list[float]:
    index = memory.vectors.index
    if ranked.vector is not None and index is not None:
        cosines = index.vectors(np.array(rows, np.int64)) @ ranked.vector
        return [min(1.0, max(0.0, each)) for each in cosines.tolist()]
    total = sum(rarity.get(word, 1.0) for word in question.words)
    if not total:
        return [0.0] * len(rows)
    texts = (telling_words(each.text) for each in entries)
    return [sum(rarity.get(w, 1.0) for w in question.words & said) / total for said in texts]


def _matters_of(fact: Entry) -> int:
    """Return the matters that a fact is about; its title names one."""
    text = fact.text if fact.title is None else f"{fact.title} {fact.text}"
    return matters_in(text, telling_words(text))
