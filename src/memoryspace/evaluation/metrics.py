"""How good one ranking is. Every function takes ranked ids, best first, and the gold ids.

"Recall at k" means three things in the literature, so none of these is called recall: ``any_at`` is
a hit rate, ``fraction_at`` counts each gold id, ``all_at`` wants every one. The mean over questions
is the caller's. A ranking may be shorter than k: what it does not hold is not found.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from ..errors import InvalidInput


def any_at(k: int, ranked: Sequence[str], gold: Collection[str]) -> float:
    """1 if at least one gold id is among the first ``k``, else 0."""
    return float(_found(k, ranked, gold) > 0)


def all_at(k: int, ranked: Sequence[str], gold: Collection[str]) -> float:
    """1 if every gold id is among the first ``k``, else 0; so 0 where there are more than k."""
    return float(_found(k, ranked, gold) == len(set(gold)))


def fraction_at(k: int, ranked: Sequence[str], gold: Collection[str]) -> float:
    """The share of the gold ids that is among the first ``k``."""
    return _found(k, ranked, gold) / len(set(gold))


def reciprocal_rank(ranked: Sequence[str], gold: Collection[str]) -> float:
    """1 / rank of the first gold id (the first place has rank 1), 0 if there is none."""
    _check(ranked, gold)
    wanted = frozenset(gold)
    return next((1 / rank for rank, id in enumerate(ranked, 1) if id in wanted), 0.0)


def ndcg_at(k: int, ranked: Sequence[str], gold: Collection[str]) -> float:
    """Normalised discounted cumulative gain of the first ``k``, gold ids counting 1, others 0.

    A gold id at rank r gains 1 / log2(r + 1); the sum is divided by that of the best ranking there
    could be, which has all gold ids (or k of them) in front.
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
    """A string would pass for a sequence of ids, and a doubled id would be counted twice."""
    if isinstance(ranked, str) or isinstance(gold, str):
        raise TypeError("ranked and gold must be collections of ids, not one string")
    if not gold:
        raise InvalidInput("gold is empty: leave questions without evidence out of the mean")
    if len(set(ranked)) != len(ranked):
        raise InvalidInput("an id is ranked twice: keep only its best place")
