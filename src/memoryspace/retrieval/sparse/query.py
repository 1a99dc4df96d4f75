"""One search: BM25 over the runs, exhaustive, or pruned where common words would cost too much.

Rare words propose the candidates. Common words (in more than 2 % of the documents) say little and
cost most, so beyond a budget they only re-score the best thousand. Nothing is pruned if all words
are rare or the index is small. If there are too few candidates, more words propose some, the rarest
first.

A mask is applied before candidates are chosen. If it allows only a few thousand documents, all of
these are looked up, and nothing is pruned.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from .documents import Chosen
from .filters import Mask, Predicate
from .scoring import Floats, Scorer, Term

_RARE_SHARE, _RARE_ANYWAY = 0.02, 2_000  # a share of the documents, and a least number

# How many postings of common words may be read in addition to those of rare words, or alone. A
# larger budget comes closer to an exhaustive search: 95 % of the first ten at a million documents.
_COMMON_SHARE, _COMMON_ANYWAY = 0.05, 20_000
_ALONE_SHARE, _ALONE_ANYWAY = 0.125, 50_000

_PARTITIONED = 1_000  # up to this many scores, the highest are found by partitioning at once
_BUCKETS = 2_000.0

_RESCORED = 1_000
_DEEPEN = 4

_LOOKED_UP = 4_000  # up to this many allowed documents, looking them up is faster
_CUT_COST = 0.25  # the cost of a masked posting, relative to a scored one


class Query:
    """A search for terms, the rarest first.

    Call ``close`` at the end: it resets the shared scratch array.
    """

    def __init__(
        self, terms: Sequence[Term], scorer: Scorer, allowed: Mask | Predicate | None
    ) -> None:
        self._terms = terms
        self._scorer = scorer
        self._documents = scorer.documents
        self._mask = allowed if isinstance(allowed, Mask) else None
        self._predicate = allowed if isinstance(allowed, Predicate) else None
        self._candidates: list[Chosen] = []
        self._alone: Floats | None = None  # the scores, while all candidates are of one term
        self._makers = 0

    def best(self, top_k: int, *, exact: bool) -> list[tuple[int, float]]:
        """Return the best allowed documents with their scores, the best first, then the newest."""
        if self._mask is not None and self._mask.count <= _LOOKED_UP:
            return self._best_looked_up(top_k, self._mask.slots(self._documents))
        wanted = len(self._terms) if exact else self._count_makers()
        while True:
            self._make_candidates(wanted)
            found = self._best_of_candidates(top_k)
            if len(found) == top_k or wanted == len(self._terms):
                return found
            wanted += 1

    def close(self) -> None:
        """Reset the scratch array."""
        if self._alone is None:
            for slots in self._candidates:
                self._documents.scores[slots] = 0.0

    def _best_looked_up(self, top_k: int, slots: Chosen) -> list[tuple[int, float]]:
        scores = self._scorer.look_up(self._terms, slots, np.zeros(len(slots)))
        slots, scores = slots[scores > 0], scores[scores > 0]
        chosen = _highest(scores, top_k)
        return self._in_order(slots[chosen], scores[chosen])[:top_k]

    def _count_makers(self) -> int:
        """Return how many of the terms, the rarest first, propose candidates."""
        living = self._documents.count
        sizes = [term.documents for term in self._terms]
        rare = bisect_right(sizes, max(_RARE_ANYWAY, _RARE_SHARE * living))
        if rare:
            budget = max(_COMMON_ANYWAY, _COMMON_SHARE * living)
        else:
            budget = max(_ALONE_ANYWAY, _ALONE_SHARE * living)
        if self._mask is not None:  # masked postings cost less, and more of the others are needed
            budget /= min(1.0, self._mask.share(self._documents) + _CUT_COST)
        return max(rare, bisect_right(list(accumulate(sizes)), budget), min(1, len(sizes)))

    def _make_candidates(self, wanted: int) -> None:
        scores = self._documents.scores
        for term in self._terms[self._makers : wanted]:
            slots, counts = self._scorer.postings(term)
            if self._mask is not None:
                marks = self._mask.marks(self._documents, slots)
                slots, counts = slots[marks], counts[marks]
            gains = self._scorer.gains(term, counts, self._documents.lengths.take(slots))
            if not self._candidates:
                self._candidates, self._alone = [slots], gains
                continue
            if self._alone is not None:
                scores[self._candidates[0]], self._alone = self._alone, None
            before = scores.take(slots)
            gains += before
            self._candidates.append(slots[before == 0.0])
            scores[slots] = gains
        self._makers = wanted

    def _best_of_candidates(self, top_k: int) -> list[tuple[int, float]]:
        if not self._candidates:
            return []
        slots, scores = self._scored()
        deeper = self._makers < len(self._terms) or self._predicate is not None
        depth = max(top_k, _RESCORED) if deeper else top_k
        while True:
            chosen = _highest(scores, depth)
            ranked = self._ranked(slots[chosen], scores[chosen], top_k)
            if len(ranked) == top_k or depth >= len(slots):
                return ranked
            depth *= _DEEPEN

    def _scored(self) -> tuple[Chosen, Floats]:
        if self._alone is not None:
            return self._candidates[0], self._alone
        slots = np.concatenate(self._candidates)
        return slots, self._documents.scores.take(slots)

    def _ranked(self, slots: Chosen, scores: Floats, top_k: int) -> list[tuple[int, float]]:
        common = self._terms[self._makers :]
        if common:
            scores = self._scorer.look_up(common, slots, scores)
        if self._predicate is not None:
            return self._predicate.first(top_k, self._in_order(slots, scores))
        if common:
            chosen = _highest(scores, top_k)
            slots, scores = slots[chosen], scores[chosen]
        return self._in_order(slots, scores)[:top_k]

    def _in_order(self, slots: Chosen, scores: Floats) -> list[tuple[int, float]]:
        order = np.lexsort((-self._documents.ages[slots], -scores))
        keys = self._documents.keys[slots[order]].tolist()
        return list(zip(keys, scores[order].tolist(), strict=True))


def _highest(scores: Floats, depth: int) -> NDArray[np.int64]:
    """Return the positions of the ``depth`` highest scores, and of all equal to the lowest."""
    if depth >= len(scores):
        return np.arange(len(scores))
    if len(scores) <= _PARTITIONED:
        return np.flatnonzero(scores >= _lowest_of(scores, depth))
    likely = _likely(scores, depth)
    highest = scores.take(likely)
    chosen: NDArray[np.int64] = likely[highest >= _lowest_of(highest, depth)]
    return chosen


def _lowest_of(scores: Floats, depth: int) -> float:
    """Return the lowest of the ``depth`` highest scores."""
    return float(np.partition(scores, len(scores) - depth)[len(scores) - depth])


def _likely(scores: Floats, depth: int) -> NDArray[np.int64]:
    """Return the positions of ``depth`` or more scores that are higher than all others.

    They are counted in buckets by size, which is much faster than partitioning.
    """
    most = float(scores.max())
    if not most > 0:
        return np.arange(len(scores))
    buckets = (scores * (_BUCKETS / most)).astype(np.int64)
    sizes = np.bincount(buckets)
    taken = int(np.searchsorted(np.cumsum(sizes[::-1]), depth)) + 1
    return np.flatnonzero(buckets >= len(sizes) - taken)
