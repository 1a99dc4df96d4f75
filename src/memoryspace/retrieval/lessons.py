"""Whether a lesson concerns a task: how likely, from 0 to 1, comparable between searches.

A lesson need not answer the words of a task as a message answers a question: a new task shares only
some of them. What counts is how much the words weigh that it does share, the rare ones more, and
how near it is in meaning. The curves were fitted to tasks whose lessons were there, and to others
whose lessons were not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from .ranking.pool import Pool

Floats = NDArray[np.float64]
Weights = Mapping[str, tuple[float, float, float]]

CONCERNS = 0.35  # what is less likely to concern a task is not handed over

LESSON_KINDS = frozenset({"experience", "tool"})

# What speaks for a lesson: the logarithm of the weight of shared words, the cosine, and a constant.
_BY_WORDS = {"experience": (3.76, 0.0, -7.88), "tool": (1.2, 0.0, -0.6)}
_BY_MEANING = {"experience": (1.04, 18.2, -6.17), "tool": (1.04, 18.2, -4.0)}
_FITTED_WITH = 413  # entries
_SMALL = 50  # entries in which a word's rarity counts as much as what words usually weigh,
_USUAL = 3.5  # which is this
_FAR = 50.0  # beyond any doubt
_IDEOGRAPH = 1 / 3  # the weight of a character that is a word of its own, against a word's


def lesson_chances(
    pool: Pool, places: NDArray[np.int64], kinds: Sequence[str], entries: int
) -> Floats:
    """Return how likely the candidates at some places concern the task asked about.

    ``entries`` is how many there are in all: how rare a word can be depends on that.
    """
    shared = np.log1p((pool.gains_at(0)[places] > 0) @ _weights(pool, entries))
    cosines = pool.cosines[places]  # 0 where nothing could be embedded: then words alone tell
    by_words = np.where(shared > 0, _sums(_BY_WORDS, kinds, shared, cosines), -_FAR)
    totals = np.where(cosines == 0, by_words, _sums(_BY_MEANING, kinds, shared, cosines))
    chances: Floats = 1 / (1 + np.exp(-np.clip(totals, -_FAR, _FAR)))
    return chances


def _sums(weights: Weights, kinds: Sequence[str], shared: Floats, cosines: Floats) -> Floats:
    by_words, by_meaning, constant = np.array([weights[kind] for kind in kinds]).T
    sums: Floats = by_words * shared + by_meaning * cosines + constant
    return sums


def _weights(pool: Pool, entries: int) -> Floats:
    """Return what each word of the task weighs: what it gives at best, in a memory of any size.

    In a small memory, where every word is of one or two tasks, that says little: there all words
    weigh nearly the same.
    """
    rarity = pool.gains.max(axis=1, initial=0.0) * _rarest(_FITTED_WITH) / _rarest(entries)
    weights = (entries * rarity + _SMALL * _USUAL) / (entries + _SMALL)
    shares = [_IDEOGRAPH if _is_ideographic(word) else 1.0 for word in pool.words]
    weighed: Floats = weights * np.array(shares)
    return weighed


def _rarest(entries: int) -> float:
    """Return how rare a word is that one of so many entries has (BM25)."""
    return math.log(1 + (entries - 0.5) / 1.5)


def _is_ideographic(word: str) -> bool:
    return any("\u4e00" <= letter <= "\u9fff" for letter in word)
