"""Metrics of one ranking. Every function takes ranked ids, best first, and the gold ids.

"Recall at k" means three things in the literature, so none of these is called recall: ``any_at`` is
a hit rate, ``fraction_at`` counts each gold id, ``all_at`` requires all of them. Callers average
over questions. A ranking may be shorter than k; ids it does not hold count as not found.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from ..errors import InvalidInput


def any_at(k: int, ranked: Sequence[str], gold: Collection[str]) -> float:
    """Return 1 if at least one gold id is among the first ``k``, else 0."""
    return float(_found(k, ranked, gold) > 0)


def all_at(k: int, ranked: Sequence[str], gold: Collection[str]) -> float:
    """Return 1 if all gold ids are among the first ``k``, else 0; always 0 for more than k ids."""
    return float(_found(k, ranked, gold) == len(set(gold)))


def fraction_at(k: int, ranked: Sequence[str], gold: Collection[str]) -> float:
    """Return the share of the gold ids that are among the first ``k``."""
    return _found(k, ranked, gold) / len(set(gold))


def reciprocal_rank(ranked: Sequence[str], gold: Collection[str]) -> float:
    """Return 1 / rank of the first gold id (ranks start at 1), or 0 if none is ranked."""
    _check(ranked, gold)
    wanted = frozenset(gold)
    return next((1 / rank for rank, id in enumerate(ranked, 1) if id in wanted), 0.0)


def ndcg_at(k: int, ranked: Sequence[str], gold: Collection[str]) -> float:
    """Return the normalised discounted cumulative gain of the first ``k``, with binary gains.

    A gold id at rank r gains 1 / log2(r + 1). The sum is divided by that of the ideal ranking,
    which has all gold ids (or k of them) first.
    """
    _check(ranked, gold)
    wanted = frozenset(gold)
    gains = [_discount(rank) for rank, id in enumerate(ranked[: _positive(k)], 1) if id in wanted]
    return sum(gains) / sum(_discount(rank) for rank in range(1, min(k, len(wanted)) + 1))


def _found(k: int, ranked: Sequence[str], gold: Collection[str]) -> int:
    _check(ranked, gold)
    return len(frozenset(gold).intersection(ranked[: _positive(k)]))


def _discount(rank: int) -> float:
    return 1 / math.log2(rank + 1)


def _positive(k: int) -> int:
    if k < 1:
        raise InvalidInput(f"k must be 1 or more, got {k}")
    return k


def _check(ranked: Sequence[str], gold: Collection[str]) -> None:
    """Reject a plain string, which is a sequence of ids by accident, and duplicate ids."""
    if isinstance(ranked, str) or isinstance(gold, str):
        raise TypeError("ranked and gold must be collections of ids, not one string")
    if not gold:
        raise InvalidInput("gold is empty: leave questions without evidence out of the mean")
    if len(set(ranked)) != len(ranked):
        raise InvalidInput("an id is ranked twice: keep only its best place")
