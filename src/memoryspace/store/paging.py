"""Paging over the entries of several sessions by rank, without visiting the skipped entries.

Each session is ordered by seq, so a bisection counts its entries below a seq. A binary search over
the range of seqs finds the seq of the n-th entry overall. Sessions that lie entirely on one side
are counted once and dropped from the search.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence
from operator import attrgetter
from typing import Generic, Protocol, TypeVar

from ..record import Where
from .contract import page_of


class InOrder(Protocol):
    """Anything with a position in a store's order."""

    @property
    def seq(self) -> int:
        """Its position."""


P = TypeVar("P", bound=InOrder)

by_seq = attrgetter("seq")


class SessionRun(Generic[P]):
    """The entries of one session ordered by seq, within the bounds of ``where``, minus some."""

    def __init__(self, entries: Sequence[P], left_out: Collection[int], where: Where) -> None:
        self._entries = entries
        self._start, self._end = _bounds(entries, where)
        self._left_out = sorted(filter(self._spans, left_out))

    def __len__(self) -> int:
        return self._end - self._start - len(self._left_out)

    @property
    def first(self) -> int:
        """The seq of the first entry, including those left out."""
        return self._entries[self._start].seq

    @property
    def last(self) -> int:
        """The seq of the last entry, including those left out."""
        return self._entries[self._end - 1].seq

    def below(self, seq: int) -> int:
        """Return how many entries have a lower seq."""
        place = bisect_left(self._entries, seq, self._start, self._end, key=by_seq)
        return place - self._start - bisect_left(self._left_out, seq)

    def between(self, first: int, last: int) -> list[P]:
        """Return the entries from one seq to another, both included."""
        start = bisect_left(self._entries, first, self._start, self._end, key=by_seq)
        end = bisect_right(self._entries, last, start, self._end, key=by_seq)
        left_out = set(self._left_out)
        return [entry for entry in self._entries[start:end] if entry.seq not in left_out]

    def _spans(self, seq: int) -> bool:
        return self._start < self._end and self.first <= seq <= self.last


def page(runs: Collection[SessionRun[P]], limit: int, where: Where) -> list[P]:
    """Return the page of all runs that ``where`` selects, in order."""
    runs = [run for run in runs if len(run)]
    start, end = page_of(sum(map(len, runs)), limit, where)
    if start >= end:
        return []
    first, last = _seq_at(runs, start), _seq_at(runs, end - 1)
    found = [entry for run in runs for entry in run.between(first, last)]
    found.sort(key=by_seq)
    return found


def _seq_at(runs: Collection[SessionRun[P]], rank: int) -> int:
    """Return the seq of the entry at a rank."""
    low, high = min(run.first for run in runs), max(run.last for run in runs)
    passed = 0  # entries of runs that end before ``low``
    while low < high:
        middle = (low + high + 1) // 2
        if passed + sum(run.below(middle) for run in runs) <= rank:
            low = middle
        else:
            high = middle - 1
        passed += sum(len(run) for run in runs if run.last < low)
        runs = [run for run in runs if run.last >= low and run.first <= high]
    return low


def _bounds(entries: Sequence[P], where: Where) -> tuple[int, int]:
    start = 0 if where.after is None else bisect_right(entries, where.after, key=by_seq)
    if where.before is None:
        return start, len(entries)
    return start, max(start, bisect_left(entries, where.before, key=by_seq))
