"""What holds now: of two messages on one matter, whether the later one takes the earlier's place.

Signs are weighed into a chance: how like the two are, which rare words they share, whether the
later says in the same breath that something ended or changed, and whether it is about what is
asked. A message that merely stands beside another shares little with it and retires nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ..catalogue import NO_ROW
from . import cues
from .asking import PersonalQuestion
from .clauses import Clause, Reading
from .matters import CHANGING
from .people import USER
from .signals import Rarity

Floats = NDArray[np.float64]

LOOKED_AT = 6  # of the best candidates: who supersedes one of them is nearly always among them
LEAST = 0.3  # chance from which on the later takes the place of the earlier
KNOWN = 0.5  # least chance where the very fact that is asked for is known to be superseded

SIGNS = (
    *("likeness", "shared words", "rarest shared word", "changed word", "word that ended"),
    *("changed matter", "tells of now", "same session", "only supposed", "long before"),
    *("fits the question", "fits it better"),
    *("asks for now", "words of the question", "fact was superseded", "none"),
)

_STRONG = cues.ENDS | cues.CHANGES | cues.CORRECTS


class Told(Struct, frozen=True):
    """One of the best candidates."""

    reading: Reading
    time: float
    age: float  # tells the order where times are equal
    session: int
    length: int
    vector: NDArray[np.float32] | None
    fit: float  # how near the question, as a share of the nearest


class Superseded(Struct, frozen=True):
    """At the place ``old`` stands what the one at ``new`` supersedes, with this chance.

    Where that ``is_sure``, it is told; elsewhere the later one only comes first.
    """

    old: int
    new: int
    chance: float
    is_sure: bool


def superseded(
    question: PersonalQuestion,
    told: Sequence[Told],
    rarity: Rarity,
    facts: Mapping[tuple[int, int], float],
    weights: Mapping[str, float],
) -> list[Superseded]:
    """Return who supersedes whom, the earliest first; ``facts`` are pairs that facts know of."""
    found = []
    for (old, new), signs in signs_of(question, told, rarity, facts).items():
        chance = chance_of(signs, weights)
        if chance >= LEAST:
            is_sure = _is_sure(signs, told[old].reading, told[new].reading, chance)
            found.append(Superseded(old, new, chance, is_sure))
    return sorted(found, key=lambda each: (_when(told[each.old]), _when(told[each.new])))


def signs_of(
    question: PersonalQuestion,
    told: Sequence[Told],
    rarity: Rarity,
    facts: Mapping[tuple[int, int], float],
) -> dict[tuple[int, int], dict[str, float]]:
    """Return the signs of each pair of which one was told after the other."""
    when = [_when(each) for each in told]
    found = {}
    for new, late in enumerate(told):
        if not _may_supersede(question, late.reading):
            continue
        alone = _signs_alone(question, late)
        for old, early in enumerate(told):
            if when[old] < when[new]:
                fact = facts.get((old, new), 0.0)
                found[old, new] = {**alone, **_signs_together(early, late, rarity, fact)}
    return found


def _when(told: Told) -> tuple[float, float]:
    return told.time, told.age


def _may_supersede(question: PersonalQuestion, new: Reading) -> bool:
    """Tell whether a message can change what is asked: others do not speak for the user."""
    is_of_user = any(USER in each.about for each in new.clauses)
    return is_of_user or not question.of_user_alone


def _is_sure(signs: Mapping[str, float], old: Reading, new: Reading, chance: float) -> bool:
    """Tell whether the earlier message can be said to hold no longer, and not only to stand behind.

    The fact asked for is known to be superseded; or the later message tells of a change, of the
    same person, on the same matter or with the same word.
    """
    if signs["fact was superseded"] >= 1:
        return True
    is_shared = bool(old.words & new.words or old.matters & new.matters)
    is_same = any(_same(early, late) for early in old.clauses for late in new.clauses)
    return chance >= KNOWN and bool(new.changes) and is_shared and is_same


def chance_of(signs: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """Return the chance that the later takes the earlier's place."""
    total = sum([weights.get(name, 0.0) * value for name, value in signs.items()])
    chance = 1 / (1 + math.exp(-max(-50.0, min(50.0, total))))
    return max(chance, KNOWN) if signs["fact was superseded"] >= 1 else chance


def _signs_alone(question: PersonalQuestion, new: Told) -> dict[str, float]:
    """Return what is seen of a message by itself, whatever it may supersede."""
    asked = len(question.words & new.reading.words) / max(1, len(question.words))
    return {
        "tells of now": float(bool(new.reading.changes & cues.NOW)),
        "only supposed": float(new.reading.is_supposed),
        "fits the question": new.fit,
        "asks for now": float(question.is_now),
        "words of the question": asked,
        "none": 1.0,
    }


def _signs_together(old: Told, new: Told, rarity: Rarity, fact: float) -> dict[str, float]:
    """Return what is seen of two messages beside one another."""
    shared = [rarity[word] for word in old.reading.words & new.reading.words]
    word, ended, matter = _in_clauses(old.reading, new.reading, rarity)
    likeness = 0.0
    if old.vector is not None and new.vector is not None:
        likeness = float(old.vector @ new.vector)
    return {
        "likeness": likeness,
        "shared words": min(2.0, sum([each**2 for each in shared])),
        "rarest shared word": max(shared, default=0.0),
        "changed word": word,
        "word that ended": ended,
        "changed matter": matter,
        "same session": float(old.session != NO_ROW and old.session == new.session),
        "long before": min(1.0, old.length / 200),
        "fits it better": new.fit - old.fit,
        "fact was superseded": fact,
    }


def _in_clauses(old: Reading, new: Reading, rarity: Rarity) -> tuple[float, float, float]:
    """Return the rarest word shared with a clause that tells a change, and with one that tells an
    end; and how much of a matter that changed is shared, of the same person."""
    word = ended = matter = 0.0
    has_shared = not old.words.isdisjoint(new.words)
    if not new.changes or not (has_shared or old.matters & new.matters & CHANGING):
        return word, ended, matter
    for late in new.clauses:
        if not late.changes:
            continue
        for early in old.clauses:
            shared = early.words & late.words if has_shared else ()
            rarest = max([rarity[each] for each in shared], default=0.0)
            word = max(word, rarest)
            if late.changes & _STRONG:
                ended = max(ended, rarest)
            on = (early.matters & late.matters & CHANGING).bit_count()
            if on and _same(early, late):
                matter = max(matter, min(on, 2) / 2)
    return word, ended, matter


def _same(early: Clause, late: Clause) -> bool:
    """Tell whether two clauses are about the same person."""
    both = early.about & late.about
    return bool(both) or (USER not in early.about | late.about and bool(early.names & late.names))
