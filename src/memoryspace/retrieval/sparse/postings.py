"""All runs of an index: sealed, merged a slice at a time, purged of removed documents.

Runs of about one size are merged, a slice with every seal. A run with mostly removed documents is
rewritten, so adding and removing without end needs bounded memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np

from ..text.analysis import Analysis
from .documents import Documents, Slots
from .merging import Merge, due
from .runs import Run, invert

_PACE = 8  # postings merged per posting sealed: each is merged as often as there are sizes
_LEAST_PACE = 6  # and never fewer than this for long, or merging falls behind


class Postings:
    """The runs by label, and the merges under way. ``segment_size`` bounds a slice."""

    def __init__(self, documents: Documents, segment_size: int) -> None:
        self.documents = documents
        self.segment_size = segment_size
        self.runs: dict[int, Run] = {}
        self.merges: list[Merge] = []
        self._credit = 0

    def seal(self, keys: Collection[int], analysis: Analysis) -> int:
        """Turn documents into a run, the older first; return its size."""
        run = self._new_run()
        slots = self.documents.seal(keys, analysis.lengths, run.label)
        run.admit(slots)
        segment = invert(analysis, slots)
        if segment is not None:
            run.append(segment)
        return run.postings + run.documents

    def remove(self, slots: Slots) -> int:
        """Mark documents as removed, all at once; return how many."""
        self.documents.remove(slots)
        counts = np.bincount(self.documents.homes[slots])  # labels are few and small
        for label in np.flatnonzero(counts).tolist():
            self.runs[label].removed += int(counts[label])
        return len(slots)

    def keep_merging(self, amount: int) -> None:
        """Start the merges that are due and do work in proportion to what came in, within bounds.

        The shortest goes first: it makes the runs fewer soonest. A long one gets what is left,
        and should that be too little, more runs come together in the next.
        """
        self._plan()
        most = max(_LEAST_PACE * amount, 2 * self.segment_size)
        self._credit = min(self._credit + _PACE * amount, most)
        while self.merges:
            merge = min(self.merges, key=lambda each: each.remaining)
            if self._credit < min(merge.remaining, self.segment_size // 4 + 1):
                return  # a slice has a fixed cost: wait until it is worth it
            self._credit -= self._advance(merge, min(self._credit, self.segment_size))
        self._credit = 0

    def merge_while(self, go_on: Callable[[], bool]) -> bool:
        """Merge slice by slice as long as one may; tell whether there is more to do."""
        self._plan()
        while self.merges and go_on():
            self._advance(self.merges[0], self.segment_size // 2 + 1)  # a whole one is too long
        return bool(self.merges)

    @property
    def nbytes(self) -> int:
        """Bytes held by the arrays."""
        return sum(run.nbytes for run in self.runs.values())

    def check(self) -> None:
        """Verify every invariant; for tests, it looks at everything."""
        for label, run in self.runs.items():
            assert run.label == label
            run.check()
        self._check_members()
        self._check_lengths()

    def _check_members(self) -> None:
        """Every slot is free or belongs to one run, and every run counts its removed documents."""
        documents = self.documents
        moved = {run.label for merge in self.merges for run in merge.inputs}
        seen: list[int] = []
        for run in self.runs.values():
            assert run.documents == sum(map(len, run.members))
            if run.label not in moved:
                slots = [slot for part in run.members for slot in part.tolist()]
                assert all(documents.homes[slot] == run.label for slot in slots)
                seen += slots
        settled = {merge.output.label for merge in self.merges}
        for run in self.runs.values():
            if run.label not in moved and run.label not in settled:
                found = sum(int((~documents.is_alive(part)).sum()) for part in run.members)
                assert run.removed == found, f"run {run.label}: {run.removed} or {found} removed"
        seen += [slot for merge in self.merges for part in merge.waiting() for slot in part]
        assert len(set(seen)) == len(seen) == documents.used_slots - documents.free_slots

    def _check_lengths(self) -> None:
        """The postings of every living document add up to its length: none is lost or doubled."""
        used = self.documents.used_slots
        lengths = np.zeros(used)
        for run in self.runs.values():
            for segment in run.segments:
                np.add.at(lengths, segment.slots, segment.counts)
        alive = self.documents.lengths[:used] < np.inf
        assert (lengths[alive] == self.documents.lengths[:used][alive]).all(), "postings are lost"

    def _plan(self) -> None:
        while runs := due([run for run in self.runs.values() if self._is_idle(run)]):
            self.merges.append(Merge(runs, self._new_run(), self.documents))

    def _is_idle(self, run: Run) -> bool:
        return all(run is not merge.output and run not in merge.inputs for merge in self.merges)

    def _advance(self, merge: Merge, budget: int) -> int:
        moved = merge.step(budget)
        if not merge.remaining:
            self._finish(merge)
        return moved

    def _finish(self, merge: Merge) -> None:
        self.merges.remove(merge)
        for run in merge.inputs:
            del self.runs[run.label]
        if merge.finish() is None:
            del self.runs[merge.output.label]
        self._plan()

    def _new_run(self) -> Run:
        """Make a run under the lowest free label: labels stay few, and fit in 16 bits."""
        label = next(each for each in range(len(self.runs) + 1) if each not in self.runs)
        run = self.runs[label] = Run(label, self.segment_size)
        return run
