"""Currency: whether a later message on the same matter supersedes an earlier one.

Weighted signs give a probability: the similarity of the two, the rare words they share, whether the
later one reports an end or a change in the same clause, and whether it fits the question. Messages
that share little do not supersede each other.
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
from .clauses import MessageClause, MessageReading
from .matters import CHANGING
from .people import USER
from .signals import Rarity

Floats = NDArray[np.float64]

LOOKED_AT = 6  # of the best candidates: a message that supersedes one is nearly always among them
LEAST = 0.3  # the probability from which the later one supersedes the earlier
KNOWN = 0.5  # the least probability if the requested fact is known to be superseded

SIGNS = (
    *("likeness", "shared words", "rarest shared word", "changed word", "word that ended"),
    *("changed matter", "tells of now", "same session", "only supposed", "long before"),
    *("fits the question", "fits it better"),
    *("asks for now", "words of the question", "fact was superseded", "none"),
)

_STRONG = cues.ENDS | cues.CHANGES | cues.CORRECTS


class Statement(Struct, frozen=True):
    """One of the best candidates, as something that may supersede or be superseded."""

    reading: MessageReading
    time: float
    age: float  # the order of adding, for equal times
    session: int
    length: int
    vector: NDArray[np.float32] | None
    fit: float  # similarity to the question, as a share of the best


class Superseded(Struct, frozen=True):
    """The candidate at ``new`` supersedes the one at ``old``, with this probability.

    If it ``is_sure``, the hit says so; otherwise the later one only ranks first.
    """

    old: int
    new: int
    chance: float
    is_sure: bool


def superseded(
    question: PersonalQuestion,
    statements: Sequence[Statement],
    rarity: Rarity,
    facts: Mapping[tuple[int, int], float],
    weights: Mapping[str, float],
) -> list[Superseded]:
    """Return which statements supersede which, the earliest first; ``facts`` are links by facts."""
    found = []
    for (old, new), signs in signs_of(question, statements, rarity, facts).items():
        chance = chance_of(signs, weights)
        if chance >= LEAST:
            is_sure = _is_sure(signs, statements[old].reading, statements[new].reading, chance)
            found.append(Superseded(old, new, chance, is_sure))
    return sorted(
        found, key=lambda each: (_when(statements[each.old]), _when(statements[each.new]))
    )


def signs_of(
    question: PersonalQuestion,
    statements: Sequence[Statement],
    rarity: Rarity,
    facts: Mapping[tuple[int, int], float],
) -> dict[tuple[int, int], dict[str, float]]:
    """Return the signs of each pair (earlier, later)."""
    when = [_when(each) for each in statements]
    found = {}
    for new, late in enumerate(statements):
        if not _may_supersede(question, late.reading):
            continue
        alone = _signs_alone(question, late)
        for old, early in enumerate(statements):
            if when[old] < when[new]:
                fact = facts.get((old, new), 0.0)
                found[old, new] = {**alone, **_signs_together(early, late, rarity, fact)}
    return found


def _when(statement: Statement) -> tuple[float, float]:
    return statement.time, statement.age


def _may_supersede(question: PersonalQuestion, new: MessageReading) -> bool:
    """Return whether a message can change the answer: one about others says nothing of the user."""
    is_of_user = any(USER in each.about for each in new.clauses)
    return is_of_user or not question.of_user_alone


def _is_sure(
    signs: Mapping[str, float], old: MessageReading, new: MessageReading, chance: float
) -> bool:
    """Return whether the earlier message is certainly superseded, not just ranked lower.

    Either the requested fact is known to be superseded, or the later message reports a change of
    the same person, on the same matter or with the same word.
    """
    if signs["fact was superseded"] >= 1:
        return True
    is_shared = bool(old.words & new.words or old.matters & new.matters)
    is_same = any(_same(early, late) for early in old.clauses for late in new.clauses)
    return chance >= KNOWN and bool(new.changes) and is_shared and is_same


def chance_of(signs: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """Return the probability that the later message supersedes the earlier."""
    total = sum([weights.get(name, 0.0) * value for name, value in signs.items()])
    chance = 1 / (1 + math.exp(-max(-50.0, min(50.0, total))))
    return max(chance, KNOWN) if signs["fact was superseded"] >= 1 else chance


def _signs_alone(question: PersonalQuestion, new: Statement) -> dict[str, float]:
    """Return the signs in the later message alone."""
    asked = len(question.words & new.reading.words) / max(1, len(question.words))
    return {
        "tells of now": float(bool(new.reading.changes & cues.NOW)),
        "only supposed": float(new.reading.is_supposed),
        "fits the question": new.fit,
        "asks for now": float(question.is_now),
        "words of the question": asked,
        "none": 1.0,
    }


def _signs_together(
    old: Statement, new: Statement, rarity: Rarity, fact: float
) -> dict[str, float]:
    """Return the signs in a pair of messages."""
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


def _in_clauses(
    old: MessageReading, new: MessageReading, rarity: Rarity
) -> tuple[float, float, float]:
    """Return three signs of shared clauses.

    These are the rarity of the rarest word shared with a clause that reports a change, the same for
    an end, and how much of a changed matter of the same person is shared.
    """
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


def _same(early: MessageClause, late: MessageClause) -> bool:
    """Return whether two clauses are about the same person."""
    both = early.about & late.about
    return bool(both) or (USER not in early.about | late.about and bool(early.names & late.names))
