"""Who is in the index: the slots that documents live in, as flat arrays, and the way from a key.

A slot is a small number that postings name a document by. It is given out again only after the
last posting that names it is gone, so slots stay as few as the documents living and not yet purged.
Nothing here is a Python object per document except two ints in a dict, which CPython's collector
does not look at.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

Slots = NDArray[np.uint32]

# A dict stops the world for a moment when it grows; many small ones do so for a short one. A prime,
# so that keys which are all multiples of something still spread.
SHARDS = 251
_GROWTH = 1 << 15  # slots at a time: bounded work, however many there are already
_INT_BYTES = 32


class Documents:
    """Keys, ages, lengths and homes by slot. A dead document's length is infinite: it scores 0."""

    def __init__(self) -> None:
        self.keys: NDArray[np.uint64] = np.zeros(0, np.uint64)
        self.ages: NDArray[np.int64] = np.zeros(0, np.int64)
        self.lengths: NDArray[np.float64] = np.zeros(0, np.float64)
        self.homes: NDArray[np.uint16] = np.zeros(0, np.uint16)
        self.scores: NDArray[np.float64] = np.zeros(0, np.float64)  # scratch, 0 between searches
        self.shards: list[dict[int, int]] = [{} for _ in range(SHARDS)]  # sealed and not removed
        self.count = 0
        self.total_length = 0
        self._free: list[Slots] = []
        self._used = 0
        self._age = 0

    def seal(self, keys: Collection[int], lengths: NDArray[np.int64], home: int) -> Slots:
        """Bring documents to life, the older first; return their slots, rising like their ages."""
        slots = self._allot(len(lengths))
        numbers = slots.tolist()
        for key, slot in zip(keys, numbers, strict=True):
            self.shards[key % SHARDS][key] = slot
        self.keys[slots] = np.fromiter(keys, np.uint64, len(numbers))
        self.ages[slots] = np.arange(self._age, self._age + len(numbers))
        self.lengths[slots] = lengths
        self.homes[slots] = home
        self._age += len(numbers)
        self.count += len(numbers)
        self.total_length += int(lengths.sum())
        return slots

    def bury(self, slots: Slots) -> None:
        """Let documents die that no shard has any more; their slots stay taken until purged."""
        self.count -= len(slots)
        self.total_length -= int(self.lengths[slots].sum())
        self.lengths[slots] = np.inf

    def is_alive(self, slots: Slots) -> NDArray[np.bool_]:
        """Tell for each slot whether its document lives."""
        return self.lengths[slots] < np.inf

    def purge(self, slots: Slots) -> None:
        """Take back slots that no posting names any more."""
        if len(slots):
            self._free.append(slots)

    @property
    def average_length(self) -> float:
        """Tokens per living document; 1 if there is none to speak of."""
        return self.total_length / self.count if self.total_length else 1.0

    @property
    def free_slots(self) -> int:
        """How many slots wait to be given out again."""
        return sum(map(len, self._free))

    @property
    def used_slots(self) -> int:
        """How many slots were ever given out."""
        return self._used

    @property
    def nbytes(self) -> int:
        """Bytes held, the dicts and their ints included."""
        arrays = sum(column.nbytes for column in self._columns())
        shards = sum(map(sys.getsizeof, self.shards))
        return arrays + shards + 2 * _INT_BYTES * sum(map(len, self.shards))

    def check(self) -> None:
        """Verify that keys, slots and counts agree; for tests, between two searches."""
        free = set(np.concatenate([*self._free, np.zeros(0, np.uint32)]).tolist())
        assert len(free) == self.free_slots, "a slot is free twice"
        assert max(free, default=-1) < self._used <= len(self.keys), "a slot that never was"
        taken = [slot for shard in self.shards for slot in shard.values()]
        assert len({*taken, *free}) == len(taken) + len(free), "two documents share a slot"
        for at, shard in enumerate(self.shards):
            assert all(key % SHARDS == at for key in shard), "a key in the wrong shard"
            assert all(int(self.keys[slot]) == key for key, slot in shard.items())
        living = self.lengths[self.lengths < np.inf]
        assert (self.count, self.total_length) == (len(living), int(living.sum()))
        assert not self.scores.any(), "a search left its scores behind"

    def _columns(self) -> tuple[NDArray[Any], ...]:
        return self.keys, self.ages, self.lengths, self.homes, self.scores

    def _allot(self, count: int) -> Slots:
        """Take slots out of those that are free, then new ones."""
        parts: list[Slots] = []
        while self._free and count > 0:
            parts.append(self._free.pop())
            count -= len(parts[-1])
        if count < 0:
            self._free.append(parts[-1][count:])
            parts[-1] = parts[-1][:count]
        parts.append(self._unused(max(0, count)))
        return np.sort(np.concatenate(parts))

    def _unused(self, count: int) -> Slots:
        first, self._used = self._used, self._used + count
        while self._used > len(self.keys):
            self._grow()
        return np.arange(first, self._used, dtype=np.uint32)

    def _grow(self) -> None:
        """Lengthen every column in place.

        Growing in place moves pages rather than bytes where the system can, and no view of a
        column is ever kept, so there is none to be left behind (hence no check for any).
        """
        old = len(self.keys)
        new = old + min(max(old, 256), _GROWTH)
        for column in self._columns():
            column.resize(new, refcheck=False)
        self.lengths[old:] = np.inf
