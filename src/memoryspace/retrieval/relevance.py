"""Relevance: how likely a hit answers the question, from 0 to 1, comparable between searches.

A ranking always has a first, also where nothing fits. So what is seen of a hit by itself counts:
how near it is in meaning, and how much of the question's telling words it and its neighbours have;
in a personal memory how many points the second look gives it, and whether anybody of the kind asked
for was ever spoken of. The weights were fitted to questions with and without an answer
(``bench/relevance.py``), and are data.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from .ranking import Ranked
from .ranking.pool import Pool

Floats = NDArray[np.float64]

RELEVANT = 0.3  # what is less likely an answer does not belong into a prompt

_STEP = 1e-6  # what a hit has less than the one before it, where it is no better


def relevances(ranked: Ranked, most: int) -> list[float]:
    """Return the relevance of the first so many, never rising; equals in the ranking are equal."""
    places = ranked.order[:most]
    own = chances(signs_of(ranked, places), sort_of(ranked))
    totals = ranked.totals[places].round(9).tolist()
    found: list[float] = []
    for at, chance in enumerate(own):
        if not at:
            found.append(chance)
        elif totals[at] == totals[at - 1]:
            found.append(found[-1])
        else:
            found.append(max(0.0, min(chance, found[-1] - _STEP)))
    return found


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
        "nobody of that kind": every * float(ranked.is_nobody_known),
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


def _rarity(pool: Pool) -> Floats:
    """Return what each word of the question gives at best: the rarer it is, the more."""
    found: Floats = pool.gains.max(axis=1, initial=0.0)
    return found


@cache
def _weights() -> dict[str, dict[str, float]]:
    text = files(__package__).joinpath("relevance.json").read_text("utf-8")
    found: dict[str, dict[str, float]] = json.loads(text)
    return found
