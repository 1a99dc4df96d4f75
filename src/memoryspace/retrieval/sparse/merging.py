"""Merging runs without a pause: postings *move* from the inputs to the output, a slice at a time.

At every moment each posting of a living document stands in exactly one run, so a search between two
slices needs to know nothing of the merge; and what has moved is freed at once, so a merge needs
little memory of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .documents import Documents, Slots
from .runs import Run, combine

FAN = 4  # runs of about one size become one run

_SMALLEST = 64  # postings; runs of up to FAN times this count as one size
_MOSTLY_REMOVED = 0.5
_EVERYTHING = (1 << 64) - 1, (1 << 32) - 1  # no term and slot come later


class Merge:
    """One merge under way: first the documents move, then the postings, in bounded steps.

    Removed documents are left behind, and so are their postings. A document that is removed later
    keeps its slot in the output, for the next merge to find.
    """

    def __init__(self, inputs: Sequence[Run], output: Run, documents: Documents) -> None:
        self.inputs = list(inputs)
        self.output = output
        self._documents = documents
        self._purged: list[Slots] = []
        self._members: list[Slots] = []
        for run in self.inputs:
            run.family = output.label
            self._members += run.members

    @property
    def remaining(self) -> int:
        """Postings and documents that still have to move."""
        return sum(run.postings for run in self.inputs) + sum(map(len, self._members))

    def step(self, budget: int) -> int:
        """Move up to ``budget`` postings or documents; return how many, 0 when all is done."""
        moved = self._move_members(budget) if self._members else 0
        if moved >= budget:
            return moved
        if not self.output.members:
            self._drop_postings()
        sources = [run for run in self.inputs if run.segments]
        return moved + (self._move_postings(sources, budget - moved) if sources else 0)

    def waiting(self) -> list[Slots]:
        """The documents that have not moved yet, and those left behind."""
        return [*self._members, *self._purged]

    def finish(self) -> Run | None:
        """Close a merge that is done; return its output, if any document is left in it."""
        for slots in self._purged:
            self._documents.purge(slots)
        self.output.removed += sum(run.removed for run in self.inputs) - sum(map(len, self._purged))
        return self.output if self.output.documents else None

    def _move_members(self, budget: int) -> int:
        parts: list[Slots] = []
        while self._members and sum(map(len, parts)) < budget:
            parts.append(self._members.pop())
        slots = np.concatenate(parts)
        alive = self._documents.is_alive(slots)
        living = slots[alive]
        self._documents.move(living, self.output.label)
        self.output.admit(living)
        if len(living) < len(slots):
            self._purged.append(slots[~alive])
        return len(slots)

    def _move_postings(self, sources: Sequence[Run], budget: int) -> int:
        term, slot = self._cut(sources, budget)
        taken = [part for run in sources if (part := run.take(term, slot)) is not None]
        merged = combine(taken, self._documents.lengths)
        if merged is not None:
            self.output.append(merged)
        return sum(part.size for part in taken)

    def _cut(self, sources: Sequence[Run], budget: int) -> tuple[int, int]:
        """Return how far to go, so that each source stays within its share of the budget.

        Terms are hashes and so evenly spread; the shares are nearly used up.
        """
        total = sum(run.postings for run in sources)
        reached = [_EVERYTHING]
        for run in sources:
            share = min(run.postings, max(1, budget * run.postings // total))
            head = run.head(share)  # all postings up to the cut must be in the head
            if share < run.postings:
                reached.append(head.posting(share - 1))
        return min(reached)

    def _drop_postings(self) -> None:
        """No document is left alive: nothing of the inputs needs to be looked at."""
        for run in self.inputs:
            run.segments.clear()
            run.last_terms.clear()
            run.postings = 0


def due(runs: Sequence[Run]) -> list[Run]:
    """Return runs to merge: one with mostly removed documents, or enough of about one size."""
    for run in runs:
        if run.removed > _MOSTLY_REMOVED * run.documents:
            return [run]
    sizes: dict[int, list[Run]] = {}
    for run in runs:
        sizes.setdefault(_size_class(run), []).append(run)
    full = (alike for _, alike in sorted(sizes.items()) if len(alike) >= FAN)
    return next(full, [])


def _size_class(run: Run) -> int:
    return int(np.log2(max(1, (run.postings + run.documents) / _SMALLEST)) / np.log2(FAN))
