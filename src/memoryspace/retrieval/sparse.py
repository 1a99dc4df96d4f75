"""A BM25 index that is always up to date and never pauses.

``add`` only notes the text. Noted texts are sealed into a sorted run together, when there is enough
of them or a search wants to see them; runs of about one size are merged, a slice with every seal.
``remove`` only notes the grave; its postings are purged when their run is merged, and a run that is
mostly dead is rewritten, so endless coming and going needs bounded memory.

One caller at a time: the index has no lock of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from ..errors import InvalidInput
from .analysis import analyse, prepare
from .documents import LANES, Documents
from .merging import Merge, due
from .query import Bm25, Query
from .runs import Run, invert

SEAL_AT = 80 * 1024  # characters: more would make the seal long, less the merges many
SEGMENT_SIZE = 1 << 15  # postings

_NOTED = 32  # what an empty text counts for, so that these are sealed, too
_GRAVES = 1024  # removals noted
_PACE = 8  # postings merged per posting sealed: each is merged as often as there are sizes
_LEAST_PACE = 6  # and never fewer than this for long, or merging falls behind

_KEYS = 1 << 64


class SparseIndex:
    """Documents by int key (64 bits, unsigned), searched by their words.

    A search sees everything added before it and nothing removed. ``seal_at`` (characters) and
    ``segment_size`` (postings) bound what one call does at once; ``clock`` is what ``step``
    measures its seconds with.
    """

    def __init__(
        self,
        *,
        k1: float = 1.2,
        b: float = 0.75,
        seal_at: int = SEAL_AT,
        segment_size: int = SEGMENT_SIZE,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        if not k1 >= 0 or not 0 <= b <= 1:
            raise InvalidInput(f"k1 must be 0 or more and b from 0 to 1, got k1={k1}, b={b}")
        if seal_at < 1 or segment_size < 1:
            raise InvalidInput(
                f"sizes must be 1 or more, got seal_at={seal_at}, segment_size={segment_size}"
            )
        self._bm25 = Bm25(k1, b)
        self._seal_at = seal_at
        self._segment_size = segment_size
        self._clock = clock
        self._documents = Documents()
        self._noted: dict[int, str] = {}  # key → text, in the order of adding
        self._noted_size = 0
        self._graves: list[int] = []
        self._lanes = self._documents.lanes
        self._runs: dict[int, Run] = {}
        self._merges: list[Merge] = []
        self._credit = 0
        prepare()

    def __len__(self) -> int:
        return len(self._noted) + self._documents.count - len(self._graves)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, int) and (key in self._noted or key in self._lanes[key % LANES])

    def add(self, key: int, text: str) -> None:
        """Index a text under a key that is not in use."""
        if type(key) is not int or not isinstance(text, str) or not 0 <= key < _KEYS:
            raise _unusable(key, text)
        noted = self._noted
        if key in noted or key in self._lanes[key % LANES]:
            raise InvalidInput(f"key {key} is already indexed; update() it, or remove() it first")
        noted[key] = text
        self._noted_size += _NOTED + len(text) if text.isascii() else _weight(text)
        if self._noted_size >= self._seal_at:
            self._settle()

    def remove(self, key: int) -> bool:
        """Forget a document; tell whether there was one."""
        slot = self._lanes[key % LANES].pop(key, None)
        if slot is None:
            return self._unnote(key)
        self._graves.append(slot)
        if len(self._graves) >= _GRAVES:
            self._keep_merging(self._bury())
        return True

    def update(self, key: int, text: str) -> None:
        """Index a text under a key in the place of whatever was there; it counts as new."""
        if not isinstance(text, str):
            raise _unusable(key, text)
        self.remove(key)
        self.add(key, text)

    def search(
        self,
        text: str,
        top_k: int = 5,
        *,
        allow: Callable[[int], bool] | None = None,
        exact: bool = False,
    ) -> list[tuple[int, float]]:
        """Return the best ``top_k`` documents as (key, score), the best first, then the newest.

        Only keys that ``allow`` says yes to are returned; as many as exist, up to ``top_k``.
        ``exact`` scores every document that has any of the words, however common these are.
        """
        if not isinstance(text, str):
            raise TypeError(f"the query must be a str, got {type(text).__name__}")
        if top_k < 1:
            raise InvalidInput(f"top_k must be 1 or more, got {top_k}")
        self._settle()
        query = Query(text, list(self._runs.values()), self._documents, self._bm25)
        try:
            return query.best(top_k, allow, exact=exact)
        finally:
            query.close()

    def step(self, seconds: float) -> bool:
        """Do upkeep for about so long; tell whether there is more to do.

        Nobody has to call this; who does it while idle makes later calls shorter.
        """
        deadline = self._clock() + seconds
        self._bury()
        self._plan()
        while self._merges and self._clock() < deadline:
            self._advance(self._merges[0], self._segment_size)
        return bool(self._merges)

    @property
    def nbytes(self) -> int:
        """Bytes held, apart from texts that are noted but not sealed yet."""
        return self._documents.nbytes + sum(run.nbytes for run in self._runs.values())

    def check(self) -> None:
        """Verify every invariant; for tests, it looks at everything."""
        self._documents.check()
        assert self._noted_size == sum(map(_weight, self._noted.values()))
        assert not any(key in self._lanes[key % LANES] for key in self._noted)
        for label, run in self._runs.items():
            assert run.label == label
            run.check()
        self._check_members()
        self._check_lengths()

    def _check_members(self) -> None:
        """Every slot is free or belongs to one run, and every run knows how many are dead."""
        documents = self._documents
        moved = {run.label for merge in self._merges for run in merge.inputs}
        seen: list[int] = []
        for run in self._runs.values():
            assert run.documents == sum(map(len, run.members))
            if run.label not in moved:
                slots = [slot for part in run.members for slot in part.tolist()]
                assert all(documents.homes[slot] == run.label for slot in slots)
                seen += slots
        settled = {merge.output.label for merge in self._merges}
        for run in self._runs.values():
            if run.label not in moved and run.label not in settled:
                dead = sum(int((~documents.is_alive(part)).sum()) for part in run.members)
                assert run.dead == dead, f"run {run.label} counts {run.dead} dead, has {dead}"
        seen += [slot for merge in self._merges for part in merge.waiting() for slot in part]
        assert len(set(seen)) == len(seen) == documents.used_slots - documents.free_slots

    def _check_lengths(self) -> None:
        """The postings of every living document add up to its length: none is lost or doubled."""
        used = self._documents.used_slots
        lengths = np.zeros(used)
        for run in self._runs.values():
            for segment in run.segments:
                np.add.at(lengths, segment.slots, segment.counts)
        alive = self._documents.lengths[:used] < np.inf
        assert (lengths[alive] == self._documents.lengths[:used][alive]).all(), "postings are lost"

    def _settle(self) -> None:
        """Let everything noted, removals and texts, take effect."""
        amount = self._bury() + self._seal()
        if amount:
            self._keep_merging(amount)

    def _bury(self) -> int:
        """Let the removed documents die, all at once; return how many."""
        if not self._graves:
            return 0
        slots = np.array(self._graves, np.uint32)
        self._graves.clear()
        self._documents.bury(slots)
        labels, counts = np.unique(self._documents.homes[slots], return_counts=True)
        for label, count in zip(labels.tolist(), counts.tolist(), strict=True):
            self._runs[label].dead += count
        return len(slots)

    def _unnote(self, key: int) -> bool:
        text = self._noted.pop(key, None)
        if text is None:
            return False
        self._noted_size -= _weight(text)
        return True

    def _seal(self) -> int:
        """Turn the texts into a run; return its size. They are let go when nothing can fail."""
        if not self._noted:
            return 0
        analysis = analyse(list(self._noted.values()))
        run = self._new_run()
        slots = self._documents.seal(self._noted, analysis.lengths, run.label)
        run.admit(slots)
        segment = invert(analysis, slots)
        if segment is not None:
            run.append(segment)
        self._noted.clear()
        self._noted_size = 0
        return run.postings + run.documents

    def _keep_merging(self, amount: int) -> None:
        """Start the merges that are due and do work in proportion to what came in, within bounds.

        The shortest goes first: it makes the runs fewer soonest. A long one gets what is left,
        and should that be too little, more runs come together in the next.
        """
        self._plan()
        most = max(_LEAST_PACE * amount, 2 * self._segment_size)
        self._credit = min(self._credit + _PACE * amount, most)
        while self._merges:
            merge = min(self._merges, key=lambda each: each.remaining)
            if self._credit < min(merge.remaining, self._segment_size // 4 + 1):
                return  # a slice has a fixed cost: wait until it is worth it
            self._credit -= self._advance(merge, min(self._credit, self._segment_size))
        self._credit = 0

    def _plan(self) -> None:
        while runs := due([run for run in self._runs.values() if self._is_idle(run)]):
            self._merges.append(Merge(runs, self._new_run(), self._documents))

    def _is_idle(self, run: Run) -> bool:
        return all(run is not merge.output and run not in merge.inputs for merge in self._merges)

    def _advance(self, merge: Merge, budget: int) -> int:
        moved = merge.step(budget)
        if not merge.remaining:
            self._finish(merge)
        return moved

    def _finish(self, merge: Merge) -> None:
        self._merges.remove(merge)
        for run in merge.inputs:
            del self._runs[run.label]
        if merge.finish() is None:
            del self._runs[merge.output.label]
        self._plan()

    def _new_run(self) -> Run:
        """Make a run under the lowest free label: labels stay few, and fit in 16 bits."""
        label = next(each for each in range(len(self._runs) + 1) if each not in self._runs)
        run = self._runs[label] = Run(label, self._segment_size)
        return run


def _weight(text: str) -> int:
    """Weigh a text by what it costs to seal: outside ASCII there may be two tokens a character."""
    return _NOTED + (len(text) if text.isascii() else 3 * len(text))


def _unusable(key: object, text: object) -> Exception:
    if not isinstance(text, str):
        return TypeError(f"the text of key {key!r} must be a str, got {type(text).__name__}")
    if type(key) is not int:
        return TypeError(f"a key must be an int, got {type(key).__name__}")
    return InvalidInput(f"key {key} is not one of 64 bits; use one from 0 to 2**64 - 1")
