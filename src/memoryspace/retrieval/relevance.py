"""Relevance: how likely a hit answers the question, from 0 to 1, comparable between searches.

A ranking always has a first, also where nothing fits. So what is seen of a hit by itself counts:
how near it is in meaning, and how much of the question's telling words it and its neighbours have;
in a personal memory how many points the second look gives it. And it counts against any hit how
much of what the question is about was never mentioned at all. The weights were fitted to questions
with and without an answer (``memoryspace bench relevance``), and are data.
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
from .ranking.pool import Pool
from .ranking.topic import unknown_share

Floats = NDArray[np.float64]

RELEVANT = 0.3  # what is less likely an answer does not belong into a prompt

_STEP = 1e-6  # what a hit has less than the one before it, where it is no better


def relevances(ranked: Ranked, most: int, catalogue: Catalogue) -> list[float]:
    """Return the relevance of the first so many, never rising; equals in the ranking are equal.

    Of lessons it is asked whether they concern a task, which is another question
    (``memoryspace.retrieval.lessons``): each is judged by itself, wherever it stands.
    """
    places = ranked.order[:most]
    own = chances(signs_of(ranked, places), sort_of(ranked))
    entries = [catalogue.at(row) for row in ranked.rows[:most].tolist()]
    lessons = [at for at, entry in enumerate(entries) if entry.kind in LESSON_KINDS]
    others = [at for at, entry in enumerate(entries) if entry.kind not in LESSON_KINDS]
    totals = ranked.totals[places].round(9).tolist()
    found = _falling([own[at] for at in others], [totals[at] for at in others])
    if lessons:
        those = [entries[at] for at in lessons]
        found += lesson_chances(ranked.pool, places[lessons], those, catalogue).tolist()
    for at, chance in zip((*others, *lessons), found, strict=True):
        own[at] = chance
    return own


def _falling(own: Sequence[float], totals: Sequence[float]) -> list[float]:
    """Return chances that fall from one to the next, and are the same for equals."""
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
    """Return what is seen of the candidates at some places."""
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
    """Return the chance that each candidate answers."""
    weights = _weights()[sort]
    total = np.sum([weights.get(name, 0.0) * each for name, each in signs.items()], axis=0)
    return [1 / (1 + math.exp(-max(-50.0, min(50.0, each)))) for each in total.tolist()]


def sort_of(ranked: Ranked) -> str:
    """Return which weights are meant: points of a personal memory mean something by themselves."""
    arms = "words" if ranked.pool.likeness is None else "words and vectors"
    return f"personal {arms}" if ranked.is_personal else arms


def _unknown(ranked: Ranked) -> Floats:
    """Return how much of what is asked about was never mentioned, for each of the pool."""
    if ranked.unknown is not None:
        return ranked.unknown
    return np.full(len(ranked.pool), unknown_share(ranked.terms))


def _rarity(pool: Pool) -> Floats:
    """Return what each word of the question gives at best: the rarer it is, the more."""
    found: Floats = pool.gains.max(axis=1, initial=0.0)
    return found


@cache
def _weights() -> dict[str, dict[str, float]]:
    text = files(__package__).joinpath("relevance.json").read_text("utf-8")
    found: dict[str, dict[str, float]] = json.loads(text)
    return found
