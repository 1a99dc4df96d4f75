"""Postings in sorted runs: which documents contain which term, and how often.

A posting is (term, slot, count). A run holds postings sorted by term and slot, in segments of a
bounded size, so that work on a run can be done one segment at a time. The postings of a term may
continue in the next segment.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..text.analysis import Analysis
from ..text.hashing import Hashes, Numbers
from .documents import Slots

Counts = NDArray[np.unsignedinteger[Any]]
Piece = tuple[Slots, Counts]
FoundTerm = tuple[int, Piece]  # the position of a term among those searched, and its postings


class Segment(NamedTuple):
    """A part of a run. The postings of ``terms[i]`` begin at ``starts[i]``."""

    terms: Hashes  # rising and distinct
    starts: NDArray[np.uint32]  # one more than terms; the last is the end
    slots: Slots  # rising within a term
    counts: Counts  # in the narrowest type that fits

    @property
    def size(self) -> int:
        """The number of postings."""
        return len(self.slots)

    @property
    def nbytes(self) -> int:
        """The bytes of the arrays."""
        return sum(part.nbytes for part in self)

    def part(self, begin: int, end: int) -> Segment:
        """Return the postings from ``begin`` to ``end``, which must differ."""
        first = int(self.starts.searchsorted(np.uint32(begin), "right")) - 1
        stop = int(self.starts.searchsorted(np.uint32(end), "left"))
        starts = self.starts[first : stop + 1].clip(begin, end) - np.uint32(begin)
        return Segment(
            self.terms[first:stop], starts, self.slots[begin:end], self.counts[begin:end]
        )

    def posting(self, at: int) -> tuple[int, int]:
        """Return term and slot of the posting at a position."""
        term = self.terms[int(self.starts.searchsorted(np.uint32(at), "right")) - 1]
        return int(term), int(self.slots[at])

    def piece(self, at: int) -> Piece:
        """Return the postings of the term at a position."""
        begin, end = self.starts[at : at + 2].tolist()
        return self.slots[begin:end], self.counts[begin:end]

    def position_after(self, term: int, slot: int) -> int:
        """Return the number of postings up to and including this term and slot."""
        at = int(self.terms.searchsorted(np.uint64(term)))
        begin = int(self.starts[at])
        if at == len(self.terms) or int(self.terms[at]) != term:
            return begin
        slots = self.slots[begin : int(self.starts[at + 1])]
        return begin + int(slots.searchsorted(np.uint32(slot), "right"))


class Run:
    """Sorted postings and the documents they belong to. ``label`` identifies the run.

    While runs are merged, they and their output are one ``family``: their documents may have
    postings in any of them.
    """

    def __init__(self, label: int, segment_size: int) -> None:
        self.label = label
        self.segment_size = segment_size
        self.family = label
        self.segments: list[Segment] = []
        self.last_terms: list[int] = []
        self.members: list[Slots] = []
        self.documents = 0
        self.removed = 0
        self.postings = 0

    def append(self, segment: Segment) -> None:
        """Add postings that come after all others."""
        self.postings += segment.size
        if self.segments and self.segments[-1].size + segment.size <= self.segment_size:
            segment = _glued(self.segments.pop(), segment)
            self.last_terms.pop()
        for part in _parts(segment, self.segment_size):
            self._append_whole(part)

    def keep(self, segment: Segment) -> None:
        """Add postings that come after all others, as a segment of their own."""
        self.postings += segment.size
        self._append_whole(segment)

    def _append_whole(self, segment: Segment) -> None:
        self.segments.append(segment)
        self.last_terms.append(int(segment.terms[-1]))

    def admit(self, slots: Slots) -> None:
        """Add documents."""
        if len(slots):
            self.members.append(slots)
            self.documents += len(slots)

    def head(self, least: int) -> Segment:
        """Return the first segment, joined with the next ones until it has ``least`` postings."""
        while self.segments[0].size < least:
            self.segments[:2] = [_glued(*self.segments[:2])]
            del self.last_terms[0]
        return self.segments[0]

    def take(self, term: int, slot: int) -> Segment | None:
        """Remove and return the postings of the first segment up to this term and slot."""
        head = self.segments[0]
        stop = head.position_after(term, slot)
        if stop == 0:
            return None
        self.postings -= stop
        if stop < head.size:
            self.segments[0] = head.part(stop, head.size)
            return head.part(0, stop)
        del self.segments[0], self.last_terms[0]
        return head

    def find(self, terms: Hashes) -> list[FoundTerm]:
        """Return which of the (rising) terms this run has, each with its postings, in pieces."""
        if len(self.segments) == 1:
            return _find_all(self.segments[0], terms)
        found: list[FoundTerm] = []
        for which, term in enumerate(terms.tolist()):
            self._find_one(which, term, terms[which], found)
        return found

    def _find_one(self, which: int, term: int, same: np.uint64, found: list[FoundTerm]) -> None:
        """Search the segments that may contain a term (``same`` is the term as ``uint64``)."""
        for at in range(bisect_left(self.last_terms, term), len(self.segments)):
            segment = self.segments[at]
            place = int(segment.terms.searchsorted(same))
            if segment.terms[place] != same:
                break
            found.append((which, segment.piece(place)))
            if self.last_terms[at] != term:
                break

    @property
    def nbytes(self) -> int:
        """The bytes of the arrays."""
        segments = sum(each.nbytes for each in self.segments)
        return segments + sum(each.nbytes for each in self.members)

    def check(self) -> None:
        """Verify order, borders and sums. Meant for tests."""
        assert self.last_terms == [int(each.terms[-1]) for each in self.segments]
        assert self.postings == sum(each.size for each in self.segments)
        pairs: list[tuple[int, int]] = []
        for segment in self.segments:
            assert 0 < segment.size < 2 * self.segment_size  # a head may be glued to its neighbour
            assert len(segment.counts) == segment.size == segment.starts[-1]
            assert segment.starts[0] == 0
            assert (np.diff(segment.starts.astype(np.int64)) > 0).all(), "a term without postings"
            terms = np.repeat(segment.terms, np.diff(segment.starts))
            pairs += zip(terms.tolist(), segment.slots.tolist(), strict=True)
            assert segment.counts.all(), "a posting with a count of 0"
        assert all(left < right for left, right in pairwise(pairs)), "postings out of order"


def invert(analysis: Analysis, slots: Slots) -> Segment | None:
    """Return the postings of a batch of tokens; ``slots`` (rising) are those of the documents."""
    if not len(analysis.hashes):
        return None
    order = _order(analysis.hashes)
    terms, owners = analysis.hashes[order], analysis.owners[order]
    is_new_term = _changes(terms)
    firsts = np.flatnonzero(is_new_term | _changes(owners))
    counts = np.diff(firsts, append=len(terms))
    starts = np.flatnonzero(is_new_term[firsts])
    return Segment(
        terms[firsts[starts]], _closed(starts, len(firsts)), slots[owners[firsts]], _narrow(counts)
    )


def combine(segments: Sequence[Segment], lengths: NDArray[np.float64]) -> Segment | None:
    """Merge segments into one, without the postings of removed documents."""
    slots = np.concatenate([each.slots for each in segments])
    terms, ranks = _ranked(segments)
    keys = ranks << np.uint64(32) | slots
    counts = np.concatenate([each.counts for each in segments])
    alive = lengths.take(slots) < np.inf
    if not alive.all():
        keys, counts = keys[alive], counts[alive]
    if not len(keys):
        return None
    order = np.argsort(keys, kind="stable")  # a few sorted stretches, so this only merges
    keys = keys.take(order)
    ranks = keys >> np.uint64(32)
    starts = np.flatnonzero(_changes(ranks))
    slots = keys.astype(np.uint32)  # the low half
    return Segment(terms[ranks[starts]], _closed(starts, len(keys)), slots, counts.take(order))


def _ranked(segments: Sequence[Segment]) -> tuple[Hashes, Hashes]:
    """Return all terms, sorted, and the position among them of each posting's term."""
    terms = np.concatenate([each.terms for each in segments])
    order = np.argsort(terms, kind="stable")
    rising = terms.take(order)
    is_new = _changes(rising)
    ranks = np.empty(len(terms), np.uint64)
    ranks[order] = np.cumsum(is_new, dtype=np.uint64)
    ranks -= np.uint64(1)
    sizes = np.concatenate([np.diff(each.starts) for each in segments])
    return rising.take(is_new.nonzero()[0]), np.repeat(ranks, sizes)


def _order(hashes: Hashes) -> Numbers:
    """Return the stable order of hashes, several times faster than by sorting positions.

    High bits of the hash and the position share one number, and sorting plain numbers is fast. If
    two hashes differ only in bits that were cut off, positions are sorted after all.
    """
    low = np.uint64((1 << len(hashes).bit_length()) - 1)
    packed = (hashes & ~low) | np.arange(len(hashes), dtype=np.uint64)
    packed.sort()
    order = (packed & low).astype(np.int64)
    rising = hashes[order]
    if (rising[1:] < rising[:-1]).any():
        return np.argsort(hashes, kind="stable")
    return order


def _find_all(segment: Segment, terms: Hashes) -> list[FoundTerm]:
    """Search one segment for all terms at once."""
    places = segment.terms.searchsorted(terms)
    hits = (segment.terms.take(places, mode="clip") == terms).nonzero()[0]
    return [(which, segment.piece(int(places[which]))) for which in hits.tolist()]


def _parts(segment: Segment, size: int) -> list[Segment]:
    if segment.size <= size:
        return [segment]
    begins = range(0, segment.size, size)
    return [segment.part(begin, min(begin + size, segment.size)) for begin in begins]


def _glued(left: Segment, right: Segment) -> Segment:
    """Join two neighbours, and the postings of a term that continues from one into the other."""
    goes_on = int(left.terms[-1] == right.terms[0])
    starts = right.starts[goes_on:] + left.starts[-1]
    return Segment(
        np.concatenate((left.terms, right.terms[goes_on:])),
        np.concatenate((left.starts[:-1], starts)),
        np.concatenate((left.slots, right.slots)),
        np.concatenate((left.counts, right.counts)),
    )


def _changes(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which values differ from the one before; the first one counts as different."""
    changes = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=changes[1:])
    return changes


def _closed(starts: Numbers, end: int) -> NDArray[np.uint32]:
    closed = np.empty(len(starts) + 1, np.uint32)
    closed[:-1], closed[-1] = starts, end
    return closed


def _narrow(counts: Numbers) -> Counts:
    return counts.astype(np.min_scalar_type(int(counts.max())))
