"""Changes of the order after scoring: a reranker, and diversity.

Both affect the first places only. Both add a signal with the difference they make, so that an
explanation still adds up.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ..text.words import words
from .fusion import Ranked
from .pool import Floats

logger = logging.getLogger(__name__)

Reranker = Callable[[str, Sequence[str]], Sequence[float]]  # question, texts → scores
TextOf = Callable[[int], str]

_VARIED = 50  # places that diversity reorders


def reread(ranked: Ranked, question: str, reranker: Reranker, text_of: TextOf, most: int) -> Ranked:
    """Sort the best by a reranker's scores. If it fails, log a warning and keep the order."""
    texts = [text_of(row) for row in ranked.rows[:most].tolist()]
    if not texts:
        return ranked
    try:
        scores = _checked(reranker(question, texts), len(texts))
    except Exception as error:  # whatever the error, there is an order already
        logger.warning("the reranker failed; keeping the order without it: %r", error)
        return ranked
    return _reordered(ranked, np.argsort(-scores, kind="stable"), "reranker")


def varied(ranked: Ranked, text_of: TextOf, strength: float) -> Ranked:
    """Fill each place with the candidate best by score less its overlap with those before."""
    rows = ranked.rows[:_VARIED].tolist()
    if len(rows) < 2 or not strength:
        return ranked
    said = [frozenset(words(text_of(row))) for row in rows]
    shares = ranked.totals[ranked.order[: len(rows)]]
    shares = shares / max(float(shares.max()), 1e-9)
    order, alike = list[int](), np.zeros(len(rows))
    while len(order) < len(rows):
        worth = (1 - strength) * shares - strength * alike
        worth[order] = -np.inf
        chosen = int(np.argmax(worth))
        order.append(chosen)
        alike = np.maximum(alike, [_overlap(said[chosen], each) for each in said])
    return _reordered(ranked, np.array(order), "variety")


def _reordered(
    ranked: Ranked, places: np.ndarray[tuple[int], np.dtype[np.int64]], name: str
) -> Ranked:
    """Reorder the first places, and reassign their scores in falling order."""
    before = ranked.order[: len(places)]
    after = before[places]
    totals = ranked.totals.copy()
    totals[after] = np.sort(ranked.totals[before])[::-1]
    parts = {**ranked.parts, name: totals - ranked.totals}
    order = np.concatenate([after, ranked.order[len(places) :]])
    return replace(ranked, order=order, totals=totals, parts=parts)


def _checked(scores: Sequence[float], count: int) -> Floats:
    found = np.asarray(scores, np.float64)
    if found.shape != (count,) or not np.isfinite(found).all():
        raise ValueError(f"expected {count} finite scores, got an array of shape {found.shape}")
    return found


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / max(len(one | other), 1)
