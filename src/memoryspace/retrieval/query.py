"""One search: BM25 over the runs, exhaustive or, where common words would cost too much, pruned.

Rare words make the candidates; common ones (in more than 2 % of the documents) say little and cost
most, so beyond a budget they only re-score the best thousand. Nothing is pruned if all words are
rare or the index is small. If the candidates are too few, more words make some, the rarest first.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .analysis import analyse
from .documents import Documents, Slots
from .runs import Piece, Run

Floats = NDArray[np.float64]

_RARE_SHARE, _RARE_ANYWAY = 0.02, 2_000  # of the documents; and so few are rare in any case

# How many postings common words may add to those of the rare ones, or make up without any. More
# finds more of what an exhaustive search finds: 95 % of the first ten at a million documents.
_COMMON_SHARE, _COMMON_ANYWAY = 0.05, 20_000
_ALONE_SHARE, _ALONE_ANYWAY = 0.125, 50_000

_RESCORED = 1_000
_DEEPEN = 4


@dataclass(frozen=True)
class Bm25:
    """The two constants of BM25: how soon repetition saturates, how much length counts."""

    k1: float
    b: float


@dataclass
class Term:
    """A word of the query: how often it is asked for, and its postings, run by run."""

    repeats: int
    pieces: list[tuple[Run, Piece]] = field(default_factory=list)
    documents: int = 0  # that hold it, the dead not yet purged included


class Query:
    """The search of one text. ``close`` must be called at the end: it cleans the scratch."""

    def __init__(self, text: str, runs: Sequence[Run], documents: Documents, bm25: Bm25) -> None:
        self._documents = documents
        self._runs = runs
        self._terms = _find(text, runs)
        self._scale = bm25.k1 + 1
        self._fixed = bm25.k1 * (1 - bm25.b)
        self._by_length = bm25.k1 * bm25.b / documents.average_length
        self._unpurged = sum(run.dead for run in runs)
        self._candidates: list[Slots] = []
        self._makers = 0

    def best(
        self, top_k: int, allow: Callable[[int], bool] | None, *, exact: bool
    ) -> list[tuple[int, float]]:
        """Return the best allowed documents with their scores, the best first, newer first."""
        wanted = len(self._terms) if exact else self._count_makers()
        allowed = _remember(allow)
        while True:
            self._make_candidates(wanted)
            found = self._best_of_candidates(top_k, allowed)
            if len(found) == top_k or wanted == len(self._terms):
                return found
            wanted += 1

    def close(self) -> None:
        """Leave the scratch as it was found."""
        for slots in self._candidates:
            self._documents.scores[slots] = 0.0

    def _count_makers(self) -> int:
        """Choose how many of the terms, the rarest first, make candidates."""
        living = self._documents.count
        sizes = [term.documents for term in self._terms]
        rare = bisect_right(sizes, max(_RARE_ANYWAY, _RARE_SHARE * living))
        if rare:
            budget = max(_COMMON_ANYWAY, _COMMON_SHARE * living)
        else:
            budget = max(_ALONE_ANYWAY, _ALONE_SHARE * living)
        return max(rare, bisect_right(list(accumulate(sizes)), budget), min(1, len(sizes)))

    def _make_candidates(self, wanted: int) -> None:
        scores = self._documents.scores
        for term in self._terms[self._makers : wanted]:
            slots, counts = self._living_postings(term)
            gains = self._gains(term, len(slots), counts, self._documents.lengths.take(slots))
            if self._candidates:
                before = scores.take(slots)
                gains += before
                self._candidates.append(slots[before == 0.0])
            else:
                self._candidates.append(slots)
            scores[slots] = gains
        self._makers = wanted

    def _living_postings(self, term: Term) -> Piece:
        slots = np.concatenate([slots for _, (slots, _) in term.pieces])
        counts = np.concatenate([counts for _, (_, counts) in term.pieces])
        if self._unpurged:
            alive = self._documents.is_alive(slots)
            return slots[alive], counts[alive]
        return slots, counts

    def _best_of_candidates(
        self, top_k: int, allowed: Callable[[int], bool] | None
    ) -> list[tuple[int, float]]:
        if not self._candidates:
            return []
        slots = np.concatenate(self._candidates)
        scores = self._documents.scores[slots]
        pruned = self._makers < len(self._terms)
        depth = max(top_k, _RESCORED) if pruned or allowed is not None else top_k
        while True:
            chosen = _highest(scores, depth)
            ranked = self._ranked(slots[chosen], scores[chosen], top_k, allowed)
            if len(ranked) == top_k or depth >= len(slots):
                return ranked
            depth *= _DEEPEN

    def _ranked(
        self,
        slots: Slots,
        scores: Floats,
        top_k: int,
        allowed: Callable[[int], bool] | None,
    ) -> list[tuple[int, float]]:
        if self._makers < len(self._terms):
            slots, scores = self._rescored(slots, scores)
        order = np.lexsort((-self._documents.ages[slots], -scores))
        if allowed is None:
            order = order[:top_k]
        keys = self._documents.keys[slots[order]].tolist()
        found = zip(keys, scores[order].tolist(), strict=True)
        if allowed is None:
            return list(found)
        return _first(top_k, found, allowed)

    def _rescored(self, slots: Slots, scores: Floats) -> tuple[Slots, Floats]:
        """Add what the common terms give to these documents."""
        slots, scores, groups = self._by_family(slots, scores)
        lengths = self._documents.lengths[slots]
        living = self._documents.count / (self._documents.count + self._unpurged)
        for term in self._terms[self._makers :]:
            counts = _counts_in(term, slots, groups)
            scores += self._gains(term, living * term.documents, counts, lengths)
        return slots, scores

    def _by_family(
        self, slots: Slots, scores: Floats
    ) -> tuple[Slots, Floats, dict[int, tuple[int, int]]]:
        """Sort by home and slot; tell where the documents of each family of runs stand."""
        family_of = np.zeros(1 + max(run.label for run in self._runs), np.uint16)
        for run in self._runs:
            family_of[run.label] = run.family
        families = family_of[self._documents.homes[slots]]
        order = np.lexsort((slots, families))
        names, begins = np.unique(families[order], return_index=True)
        ends = np.append(begins[1:], len(slots))
        spans = zip(begins.tolist(), ends.tolist(), strict=True)
        return slots[order], scores[order], dict(zip(names.tolist(), spans, strict=True))

    def _gains(self, term: Term, holding: float, counts: NDArray[Any], lengths: Floats) -> Floats:
        """What a term gives to documents that have it so often and are so long."""
        rarity = math.log1p((self._documents.count - holding + 0.5) / (holding + 0.5))
        gains = lengths * self._by_length
        gains += self._fixed
        gains += counts
        np.divide(counts, gains, out=gains)
        gains *= term.repeats * self._scale * rarity
        return gains


def _find(text: str, runs: Sequence[Run]) -> list[Term]:
    """Look up the words of a query; return those that some document holds, the rarest first."""
    hashes, repeats = np.unique(analyse([text]).hashes, return_counts=True)
    terms = [Term(count) for count in repeats.tolist()]
    for run in runs:
        for which, piece in run.find(hashes):
            terms[which].pieces.append((run, piece))
            terms[which].documents += len(piece[0])
    return sorted((term for term in terms if term.documents), key=lambda term: term.documents)


def _counts_in(term: Term, slots: Slots, groups: dict[int, tuple[int, int]]) -> Floats:
    """How often a term stands in each of these documents (sorted by family and slot)."""
    counts = np.zeros(len(slots))
    for run, (held, times) in term.pieces:
        begin, end = groups.get(run.family, (0, 0))
        if len(run.segments) > 1 and begin < end:  # a piece of many: only some can be in it
            within = slots[begin:end].searchsorted(held[:: max(1, len(held) - 1)])
            begin, end = begin + int(within[0]), min(end, begin + int(within[-1]) + 1)
        if begin < end:
            wanted = slots[begin:end]
            at = held.searchsorted(wanted)
            counts[begin:end] += (held.take(at, mode="clip") == wanted) * times.take(
                at, mode="clip"
            )
    return counts


def _highest(scores: Floats, depth: int) -> NDArray[np.int64]:
    """Positions of the ``depth`` highest scores and of all that equal the lowest of these."""
    if depth >= len(scores):
        return np.arange(len(scores))
    lowest = np.partition(scores, len(scores) - depth)[len(scores) - depth]
    return np.flatnonzero(scores >= lowest)


def _remember(allow: Callable[[int], bool] | None) -> Callable[[int], bool] | None:
    """Ask about each key once, however often the search deepens."""
    if allow is None:
        return None
    answers: dict[int, bool] = {}

    def allowed(key: int) -> bool:
        answer = answers.get(key)
        if answer is None:
            answer = answers[key] = bool(allow(key))
        return answer

    return allowed


def _first(
    top_k: int, found: Iterable[tuple[int, float]], allowed: Callable[[int], bool]
) -> list[tuple[int, float]]:
    chosen: list[tuple[int, float]] = []
    for key, score in found:
        if allowed(key):
            chosen.append((key, score))
            if len(chosen) == top_k:
                break
    return chosen
