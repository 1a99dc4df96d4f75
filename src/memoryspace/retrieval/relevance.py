"""Relevance: how likely a hit answers the question, from 0 to 1, comparable between searches.

A ranking always has a first, also where nothing fits. So what is seen of a hit by itself is weighed:
how near it is in meaning, how much of the question's telling words it has, how many of them were
ever said at all. The weights were fitted to questions with and without an answer
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

SIGNS = ("nearness", "nearest", "stands out", "words", "words around it", "words ever said", "none")

_STEP = 1e-6  # what a hit has less than the one before it, where it is no better
_BESIDE = 4  # hits that the nearest is compared with


def relevances(ranked: Ranked, most: int) -> list[float]:
    """Return the relevance of the first so many, never rising; equals in the ranking are equal."""
    found: list[float] = []
    places = ranked.order[:most]
    own = chances(signs_of(ranked.pool, places), with_vectors=ranked.pool.likeness is not None)
    totals = ranked.totals[places].round(9).tolist()
    for at, chance in enumerate(own):
        if not at:
            found.append(chance)
        elif totals[at] == totals[at - 1]:
            found.append(found[-1])
        else:
            found.append(max(0.0, min(chance, found[-1] - _STEP)))
    return found


def signs_of(pool: Pool, places: NDArray[np.int64]) -> dict[str, Floats]:
    """Return what is seen of the candidates at some places."""
    rarity = _rarity(pool)
    total = max(float(rarity.sum()), 1e-9)
    own = pool.gains_at(0)[places] > 0
    around = pool.window[places] > 0
    known = (pool.gains > 0).any(axis=1)
    cosines = np.sort(pool.cosines)[::-1]
    nearest = float(cosines[0]) if len(cosines) else 0.0
    beside = float(cosines[1 : 1 + _BESIDE].mean()) if len(cosines) > 1 else 0.0
    every = np.ones(len(places))
    return {
        "nearness": pool.cosines[places],
        "nearest": every * nearest,
        "stands out": every * (nearest - beside),
        "words": own @ rarity / total,
        "words around it": around @ rarity / total,
        "words ever said": every * float(known @ rarity) / total,
        "none": every,
    }


def chances(signs: Mapping[str, Floats], *, with_vectors: bool) -> list[float]:
    """Return the chance that each candidate answers."""
    weights = _weights()["words and vectors" if with_vectors else "words"]
    total = np.sum([weights.get(name, 0.0) * each for name, each in signs.items()], axis=0)
    return [1 / (1 + math.exp(-max(-50.0, min(50.0, each)))) for each in total.tolist()]


def _rarity(pool: Pool) -> Floats:
    """Return how rare each word of the question is among the candidates; who is nowhere is rarest."""
    counts = (pool.gains > 0).sum(axis=1)
    found: Floats = np.log1p(len(pool.known) / (1.0 + counts))
    return found


@cache
def _weights() -> dict[str, dict[str, float]]:
    text = files(__package__).joinpath("relevance.json").read_text("utf-8")
    found: dict[str, dict[str, float]] = json.loads(text)
    return found
