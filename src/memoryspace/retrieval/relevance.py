"""Relevance: the probability, from 0 to 1, that a hit answers the question.

It compares between searches, unlike a score: every ranking has a first hit, even if nothing fits.
Evidence for a hit is its cosine, the share of the question's rare words in it and around it, and in
a personal memory its points from the second pass. Evidence against every hit is the share of the
question's topic that was never mentioned. The weights are data (``relevance.json``), fitted to
questions with and without an answer by ``memoryspace bench relevance``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from .catalogue import Catalogue
from .lessons import LESSON_KINDS, lesson_chances
from .ranking import Ranked
from .ranking.pool import CandidatePool
from .ranking.topic import unknown_share

Floats = NDArray[np.float64]

RELEVANT = 0.3  # hits below this do not belong in a prompt

_OUTDATED = 0.5  # the factor for what no longer holds: about one such hit in eight is right
_STEP = 1e-6  # how much relevance falls from one hit to the next, at least


def relevances(ranked: Ranked, most: int, catalogue: Catalogue) -> list[float]:
    """Return the relevance of the first ``most`` candidates, in the order of the ranking.

    It falls along the ranking, and is the same for equal scores, with two exceptions. An entry that
    no longer holds has half of what it would have. That of a lesson is the probability that it
    concerns a task (``memoryspace.retrieval.lessons``), and does not depend on its rank.
    """
    places = ranked.order[:most]
    own = chances(signs_of(ranked, places), sort_of(ranked))
    entries = [catalogue.at(row) for row in ranked.rows[:most].tolist()]
    lessons = [at for at, entry in enumerate(entries) if entry.kind in LESSON_KINDS]
    others = [at for at, entry in enumerate(entries) if entry.kind not in LESSON_KINDS]
    totals = ranked.totals[places].round(9).tolist()
    found = _falling([own[at] for at in others], [totals[at] for at in others])
    for number, at in enumerate(others):
        if int(places[at]) in ranked.outdated:
            found[number] *= _OUTDATED
    if lessons:
        those = [entries[at] for at in lessons]
        found += lesson_chances(ranked.pool, places[lessons], those, catalogue).tolist()
    for at, chance in zip((*others, *lessons), found, strict=True):
        own[at] = chance
    return own


def _falling(own: Sequence[float], totals: Sequence[float]) -> list[float]:
    """Return the probabilities made to fall from one to the next, the same for equal totals."""
    falling: list[float] = []
    for at, chance in enumerate(own):
        if not at:
            falling.append(chance)
        elif totals[at] == totals[at - 1]:
            falling.append(falling[-1])
        else:
            falling.append(max(0.0, min(chance, falling[-1] - _STEP)))
    return falling


def signs_of(ranked: Ranked, places: NDArray[np.int64]) -> dict[str, Floats]:
    """Return the evidence on the candidates at some places of the pool, by name."""
    pool = ranked.pool
    rarity = _rarity(pool)
    total = max(float(rarity.sum()), 1e-9)
    every = np.ones(len(places))
    return {
        "nearness": pool.cosines[places],
        "nearest": every * float(pool.cosines.max(initial=0.0)),
        "words": (pool.gains_at(0)[places] > 0) @ rarity / total,
        "words around it": (pool.window[places] > 0) @ rarity / total,
        "points": ranked.totals[places],
        "never mentioned": _unknown(ranked)[places],
        "none": every,
    }


def chances(signs: Mapping[str, Floats], sort: str) -> list[float]:
    """Return the probability that each candidate answers."""
    weights = _weights()[sort]
    total = np.sum([weights.get(name, 0.0) * each for name, each in signs.items()], axis=0)
    return [1 / (1 + math.exp(-max(-50.0, min(50.0, each)))) for each in total.tolist()]


def sort_of(ranked: Ranked) -> str:
    """Return which set of weights applies; a personal memory has its own, as its points differ."""
    arms = "words" if ranked.pool.likeness is None else "words and vectors"
    return f"personal {arms}" if ranked.is_personal else arms


def _unknown(ranked: Ranked) -> Floats:
    """Return the share of the question's topic that was never mentioned, per candidate."""
    if ranked.unknown is not None:
        return ranked.unknown
    return np.full(len(ranked.pool), unknown_share(ranked.terms))


def _rarity(pool: CandidatePool) -> Floats:
    """Return the most that each word of the question contributes: the rarer, the more."""
    found: Floats = pool.gains.max(axis=1, initial=0.0)
    return found


@cache
def _weights() -> dict[str, dict[str, float]]:
    text = files(__package__).joinpath("relevance.json").read_text("utf-8")
    found: dict[str, dict[str, float]] = json.loads(text)
    return found
