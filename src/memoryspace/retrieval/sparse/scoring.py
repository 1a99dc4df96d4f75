"""BM25 scores of documents: by reading all postings of a word, or by looking documents up.

A document that died but is not purged still has postings; it counts for nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .documents import Chosen, Documents
from .runs import Counts, Piece, Run

Floats = NDArray[np.float64]
_NEARLY_NOTHING = 1e-300
_SMALL = 1 << 18  # documents for which a column fits in the processor's cache
_WALKED = 64  # postings that can be read in the time of one lookup

Joined = tuple[Chosen, Counts]
Groups = dict[int, tuple[int, int]]  # family of runs → begin and end of its documents


@dataclass(frozen=True)
class Bm25:
    """The two constants of BM25: how soon repetition saturates, how much length counts."""

    k1: float
    b: float


@dataclass
class Term:
    """A word of the query: how often it occurs there, and its postings, run by run."""

    word: str
    repeats: int
    pieces: list[tuple[Run, Piece]] = field(default_factory=list)
    documents: int = 0  # that hold it, including removed ones not purged yet
    living: int = -1  # of these, or not counted yet
    joined: Joined | None = None  # the postings of the living in one piece, once they were needed


def find_terms(
    words: Sequence[str], hash_of: Callable[[str], int], runs: Sequence[Run]
) -> list[Term]:
    """Return the distinct terms of a query with their postings, the rarest first."""
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
        self._unpurged = sum(run.removed for run in runs)
        self._scale = bm25.k1 + 1
        self._fixed = bm25.k1 * (1 - bm25.b)
        self._by_length = bm25.k1 * bm25.b / documents.average_length

    def rarity(self, term: Term) -> float:
        """Return the inverse document frequency of a term."""
        if term.living < 0:
            self._count_living(term)
        return math.log1p((self.documents.count - term.living + 0.5) / (term.living + 0.5))

    def postings(self, term: Term) -> Joined:
        """Return the postings of the living."""
        if term.joined is None:
            slots = np.concatenate([slots for _, (slots, _) in term.pieces], dtype=np.int64)
            counts = np.concatenate([counts for _, (_, counts) in term.pieces])
            if self._unpurged:
                alive = self.documents.is_alive(slots)
                slots, counts = slots[alive], counts[alive]
            term.joined, term.living = (slots, counts), len(slots)
        return term.joined

    def held(self, terms: Sequence[Term], most: int) -> Chosen:
        """Return at most so many living documents that hold the rarest of some terms, or nobody."""
        rarest_first = sorted(terms, key=lambda term: term.documents)
        if not terms or not rarest_first[0].documents:
            return np.empty(0, np.int64)
        slots: Chosen | None = None
        for term in rarest_first:
            if term.documents > _WALKED * most:
                break  # so common a word excludes little and takes long
            held = self.postings(term)[0]
            slots = held if slots is None else np.intersect1d(slots, held, assume_unique=True)
            if len(slots) <= most:
                return slots
        return np.empty(0, np.int64)

    def gains(self, term: Term, counts: NDArray[Any], lengths: Floats) -> Floats:
        """Return the gains of a term for documents with these counts and lengths."""
        gains = self._saturated(counts, lengths)
        gains *= self._weight(term)
        return gains

    def look_up(self, terms: Sequence[Term], slots: Chosen, scores: Floats) -> Floats:
        """Return the scores of living documents with what the terms give added."""
        lengths, summed = self.documents.lengths.take(slots), scores.copy()
        for term, counts in zip(terms, self._counts(terms, slots), strict=True):
            summed += self.gains(term, counts, lengths)
        return summed

    def look_up_each(self, terms: Sequence[Term], slots: Chosen) -> Floats:
        """Return what each term gives to each of some living documents."""
        counts = np.array(self._counts(terms, slots)).reshape(len(terms), len(slots))
        gains = self._saturated(counts, self.documents.lengths.take(slots))
        gains *= np.array([self._weight(term) for term in terms])[:, np.newaxis]
        return gains.T

    def _saturated(self, counts: NDArray[Any], lengths: Floats) -> Floats:
        """Return the saturated counts, from 0 to 1; for several terms one row per term."""
        worth: Floats = lengths * self._by_length
        worth += self._fixed
        worth = np.add(worth, counts, out=worth) if counts.ndim == 1 else worth + counts
        if not self._fixed:
            np.maximum(worth, _NEARLY_NOTHING, out=worth)  # avoids a division by 0
        np.divide(counts, worth, out=worth)
        return worth

    def _weight(self, term: Term) -> float:
        return term.repeats * self._scale * self.rarity(term)

    def _counts(self, terms: Sequence[Term], slots: Chosen) -> list[NDArray[Any]]:
        """Return for each term its counts in these documents.

        All postings of a term are read, and the requested ones picked out. If they far outnumber
        the documents, or the index is large, the documents are looked up in them instead.
        """
        if not len(slots):
            return [np.zeros(0)] * len(terms)
        most = _WALKED * len(slots) if self.documents.used_slots <= _SMALL else 0
        is_few = [term.documents <= most for term in terms]
        order, groups = self._by_family(slots) if not all(is_few) else (None, {})
        places = self.documents.places
        places[slots] = np.arange(1, len(slots) + 1, dtype=np.uint32)
        try:
            own = places.take(slots)  # for a document given twice, the later place
            return [
                _counts_at(self.postings(term), places, own)
                if few
                else _counts_in(term, slots, order, groups)
                for term, few in zip(terms, is_few, strict=True)
            ]
        finally:
            places[slots] = 0

    def _count_living(self, term: Term) -> None:
        term.living = term.documents
        if self._unpurged:
            alive = (self.documents.is_alive(slots) for _, (slots, _) in term.pieces)
            term.living = sum(int(np.count_nonzero(each)) for each in alive)

    def _by_family(self, slots: Chosen) -> tuple[NDArray[np.int64], Groups]:
        """Return the order by family and slot, and the range of each family's documents in it."""
        family_of = np.zeros(1 + max((run.label for run in self._runs), default=0), np.uint16)
        for run in self._runs:
            family_of[run.label] = run.family
        families = family_of[self.documents.homes[slots]]
        order = np.lexsort((slots, families))
        names, begins = np.unique(families[order], return_index=True)
        ends = np.append(begins[1:], len(slots))
        spans = zip(begins.tolist(), ends.tolist(), strict=True)
        return order, dict(zip(names.tolist(), spans, strict=True))


def _counts_at(
    postings: Joined, places: NDArray[np.uint32], own: NDArray[np.uint32]
) -> NDArray[Any]:
    """Return the counts of a term in documents that have a place; ``own`` are their places."""
    held, times = postings
    found = np.zeros(len(own) + 1, np.uint32)  # the first is for documents without a place
    at = places.take(held)
    hits = (at > 0).nonzero()[0]
    found[at.take(hits)] = times.take(hits)
    return found.take(own)


def _counts_in(term: Term, slots: Chosen, order: Chosen | None, groups: Groups) -> Floats:
    """Return the counts of a term in these documents; ``order`` is by family and slot."""
    assert order is not None
    sorted_slots, counts = slots[order].astype(np.uint32), np.zeros(len(slots))
    for run, (held, times) in term.pieces:
        begin, end = groups.get(run.family, (0, 0))
        if len(run.segments) > 1 and begin < end:  # only some documents can be in this piece
            within = sorted_slots[begin:end].searchsorted(held[:: max(1, len(held) - 1)])
            begin, end = begin + int(within[0]), min(end, begin + int(within[-1]) + 1)
        if begin < end:
            wanted = sorted_slots[begin:end]
            at = held.searchsorted(wanted)
            counts[begin:end] += (held.take(at, mode="clip") == wanted) * times.take(
                at, mode="clip"
            )
    in_place = np.empty_like(counts)
    in_place[order] = counts
    return in_place
