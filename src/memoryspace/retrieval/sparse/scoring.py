"""What BM25 gives to documents: by walking the postings of a word, or by looking documents up.

A document that died but is not purged still has postings; it counts for nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .documents import Documents, Slots
from .runs import Piece, Run

Floats = NDArray[np.float64]
_NEARLY_NOTHING = 1e-300

Groups = dict[int, tuple[int, int]]  # where the documents of each family of runs stand


@dataclass(frozen=True)
class Bm25:
    """The two constants of BM25: how soon repetition saturates, how much length counts."""

    k1: float
    b: float


@dataclass
class Term:
    """A word of the query: how often it is asked for, and its postings, run by run."""

    word: str
    repeats: int
    pieces: list[tuple[Run, Piece]] = field(default_factory=list)
    documents: int = 0  # that hold it, the dead not yet purged included
    living: int = -1  # of these, or not counted yet


def find_terms(
    words: Sequence[str], hash_of: Callable[[str], int], runs: Sequence[Run]
) -> list[Term]:
    """Look up the words of a query; return each as it stands there first, the rarest first."""
    by_hash: dict[int, Term] = {}
    for word in words:
        term = by_hash.setdefault(hash_of(word), Term(word, 0))
        term.repeats += 1
    hashes = np.array(sorted(by_hash), np.uint64)
    terms = [by_hash[each] for each in sorted(by_hash)]
    for run in runs:
        for which, piece in run.find(hashes):
            terms[which].pieces.append((run, piece))
            terms[which].documents += len(piece[0])
    return sorted(terms, key=lambda term: term.documents)


class Scorer:
    """BM25 over the runs as they are now."""

    def __init__(self, runs: Sequence[Run], documents: Documents, bm25: Bm25) -> None:
        self.documents = documents
        self._runs = runs
        self._unpurged = sum(run.dead for run in runs)
        self._scale = bm25.k1 + 1
        self._fixed = bm25.k1 * (1 - bm25.b)
        self._by_length = bm25.k1 * bm25.b / documents.average_length

    def rarity(self, term: Term) -> float:
        """Return how much it says of a document that it holds a term."""
        if term.living < 0:
            self._count_living(term)
        return math.log1p((self.documents.count - term.living + 0.5) / (term.living + 0.5))

    def postings(self, term: Term) -> Piece:
        """Return the postings of the living."""
        slots = np.concatenate([slots for _, (slots, _) in term.pieces])
        counts = np.concatenate([counts for _, (_, counts) in term.pieces])
        if self._unpurged:
            alive = self.documents.is_alive(slots)
            slots, counts = slots[alive], counts[alive]
        term.living = len(slots)
        return slots, counts

    def gains(self, term: Term, counts: NDArray[Any], lengths: Floats) -> Floats:
        """Return what a term gives to documents that have it so often and are so long."""
        gains = lengths * self._by_length
        gains += self._fixed
        gains += counts
        if not self._fixed:
            np.maximum(gains, _NEARLY_NOTHING, out=gains)  # an empty document divides by nothing
        np.divide(counts, gains, out=gains)
        gains *= term.repeats * self._scale * self.rarity(term)
        return gains

    def look_up(self, terms: Sequence[Term], slots: Slots, scores: Floats) -> Floats:
        """Return the scores of living documents with what the terms give added."""
        if not len(slots):
            return scores
        order, groups = self._by_family(slots)
        slots, summed = slots[order], scores[order]
        lengths = self.documents.lengths[slots]
        for term in terms:
            summed += self.gains(term, _counts_in(term, slots, groups), lengths)
        scores = np.empty_like(summed)
        scores[order] = summed
        return scores

    def look_up_each(self, terms: Sequence[Term], slots: Slots) -> Floats:
        """Return what each term gives to each of some living documents."""
        order, groups = self._by_family(slots)
        slots, gains = slots[order], np.empty((len(slots), len(terms)))
        lengths = self.documents.lengths[slots]
        for number, term in enumerate(terms):
            gains[order, number] = self.gains(term, _counts_in(term, slots, groups), lengths)
        return gains

    def _count_living(self, term: Term) -> None:
        term.living = term.documents
        if self._unpurged:
            alive = (self.documents.is_alive(slots) for _, (slots, _) in term.pieces)
            term.living = sum(int(np.count_nonzero(each)) for each in alive)

    def _by_family(self, slots: Slots) -> tuple[NDArray[np.int64], Groups]:
        """Sort by home and slot; tell where the documents of each family of runs stand."""
        family_of = np.zeros(1 + max((run.label for run in self._runs), default=0), np.uint16)
        for run in self._runs:
            family_of[run.label] = run.family
        families = family_of[self.documents.homes[slots]]
        order = np.lexsort((slots, families))
        names, begins = np.unique(families[order], return_index=True)
        ends = np.append(begins[1:], len(slots))
        spans = zip(begins.tolist(), ends.tolist(), strict=True)
        return order, dict(zip(names.tolist(), spans, strict=True))


def _counts_in(term: Term, slots: Slots, groups: Groups) -> Floats:
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
