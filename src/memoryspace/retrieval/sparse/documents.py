"""The documents of an index: their slots and columns, as flat arrays.

A slot is a small number that postings name a document by. It is given out again only after the
last posting that names it is gone, so slots stay as few as the documents living and not yet purged.
"""

from __future__ import annotations

import mmap
import sys
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .slots_by_key import Slots, SlotsByKey, StoredKeys

__all__ = ["Chosen", "Documents", "Slots"]

Chosen = NDArray[np.int64]  # slots to work with: numpy converts any other numbers each time

_LEAST = 256  # slots
_COPIED_AT_ONCE = 4  # slots per new one: done before there is no room left
_STORED_COLUMNS = ("keys", "ages", "lengths", "homes")
_SCRATCH = ("scores", "places")


class Documents:
    """Keys, ages, lengths and homes by slot. The length of a removed document is infinite."""

    def __init__(self) -> None:
        self.keys: NDArray[np.uint64] = _column(_LEAST, np.uint64)
        self.ages: NDArray[np.int64] = _column(_LEAST, np.int64)
        self.lengths: NDArray[np.float64] = _column(_LEAST, np.float64)
        self.homes: NDArray[np.uint16] = _column(_LEAST, np.uint16)
        self.scores: NDArray[np.float64] = _column(_LEAST, np.float64)  # 0 between searches
        self.places: NDArray[np.uint32] = _column(_LEAST, np.uint32)  # 0 between look-ups
        self._wider: dict[str, NDArray[Any]] = {}
        self._copied = 0
        self.by_key = SlotsByKey()  # the sealed and not removed
        self.count = 0
        self.total_length = 0
        self._free: list[Slots] = []
        self._used = 0
        self._age = 0

    def seal(self, keys: Collection[int], lengths: NDArray[np.int64], home: int) -> Slots:
        """Add documents, oldest first; return their slots, in ascending order like their ages."""
        slots = self._allot(len(lengths))
        given = np.fromiter(keys, np.uint64, len(slots))
        self.by_key.put(given, slots)
        self._put("keys", slots, given)
        self._put("ages", slots, np.arange(self._age, self._age + len(slots)))
        self._put("lengths", slots, lengths)
        self._put("homes", slots, home)
        self._put("scores", slots, 0.0)
        self._put("places", slots, 0)
        self._age += len(slots)
        self.count += len(slots)
        self.total_length += int(lengths.sum())
        return slots

    def remove(self, slots: Slots) -> None:
        """Mark documents as removed that no lane has any more; ``purge`` frees their slots."""
        self.count -= len(slots)
        self.total_length -= int(self.lengths[slots].sum())
        self._put("lengths", slots, np.inf)

    def move(self, slots: Slots, home: int) -> None:
        """Give documents another home."""
        self._put("homes", slots, home)

    def is_alive(self, slots: Slots | Chosen) -> NDArray[np.bool_]:
        """Return, for each slot, whether its document was not removed."""
        return self.lengths.take(slots) < np.inf

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
        columns: list[NDArray[Any]] = [
            getattr(self, name) for name in (*_STORED_COLUMNS, *_SCRATCH)
        ]
        arrays = sum(column.nbytes for column in (*columns, *self._wider.values()))
        return arrays + self.by_key.nbytes

    def export(self) -> dict[str, NDArray[Any]]:
        """Return everything as arrays, the columns of used slots and what is sorted by key."""
        columns: dict[str, NDArray[Any]] = {
            name: getattr(self, name)[: self._used] for name in _STORED_COLUMNS
        }
        living = np.flatnonzero(columns["lengths"] < np.inf)
        living = living[np.argsort(columns["keys"][living])]
        return {
            **columns,
            "sorted_keys": columns["keys"][living],
            "sorted_slots": living.astype(np.uint32),
            "free": np.concatenate([*self._free, np.zeros(0, np.uint32)]),
        }

    @classmethod
    def restore(cls, arrays: Mapping[str, NDArray[Any]]) -> Documents:
        """Make documents of what ``export`` returned."""
        self = cls()
        self._used = len(arrays["keys"])
        room = max(_LEAST, 1 << (2 * self._used).bit_length())
        for name in (*_STORED_COLUMNS, *_SCRATCH):
            setattr(self, name, _column(room, getattr(self, name).dtype))
        for name in _STORED_COLUMNS:
            getattr(self, name)[: self._used] = arrays[name]
        lengths = self.lengths[: self._used]
        self.count = len(arrays["sorted_keys"])
        self.total_length = int(lengths.sum(where=lengths < np.inf))
        self._age = 1 + int(self.ages[: self._used].max(initial=-1))
        self.purge(np.array(arrays["free"]))
        self.by_key = SlotsByKey(StoredKeys(arrays["sorted_keys"], arrays["sorted_slots"]))
        return self

    def check(self) -> None:
        """Verify that keys, slots and counts agree; for tests, between two searches."""
        free = set(np.concatenate([*self._free, np.zeros(0, np.uint32)]).tolist())
        assert len(free) == self.free_slots, "a slot is free twice"
        assert max(free, default=-1) < self._used <= len(self.keys), "a slot that never was"
        taken = self.by_key.items()
        assert len({*taken.values(), *free}) == len(taken) + len(free), "a slot is shared"
        for key, slot in taken.items():
            assert int(self.keys[slot]) == key, "a slot with the wrong key"
        lengths = self.lengths[: self._used]
        living = lengths[lengths < np.inf]
        assert (self.count, self.total_length) == (len(living), int(living.sum()))
        assert not self.scores[: self._used].any(), "a search left its scores behind"
        assert not self.places[: self._used].any(), "a look-up left its places behind"
        for name, column in self._wider.items():
            same = column[: self._copied] == getattr(self, name)[: self._copied]
            assert same.all(), f"the wider {name} differ"

    def _put(self, column: str, slots: Slots, values: Any) -> None:
        """The one door to the columns: what is being widened is written in both places."""
        getattr(self, column)[slots] = values
        if self._wider:
            self._wider[column][slots] = values

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
        first = self._used
        while first + count > len(self.keys):
            self._widen(len(self.keys))
        self._used += count
        if 2 * self._used > len(self.keys):
            self._widen(_COPIED_AT_ONCE * count)
        return np.arange(first, self._used, dtype=np.uint32)

    def _widen(self, amount: int) -> None:
        """Copy so many slots into columns twice as wide; take these when the old ones are full.

        Copying everything when there is no room left would be a pause that grows with the index.
        """
        names = (*_STORED_COLUMNS, *_SCRATCH)
        room = len(self.keys)
        if not self._wider:
            self._wider = {name: _column(2 * room, getattr(self, name).dtype) for name in names}
            self._copied = 0
        end = min(self._copied + amount, room)
        for name in names:
            self._wider[name][self._copied : end] = getattr(self, name)[self._copied : end]
        self._copied = end
        if end == room:
            for name, column in self._wider.items():
                setattr(self, name, column)
            self._wider = {}


def _column(room: int, dtype: DTypeLike) -> NDArray[Any]:
    """Return zeros that take no memory and no time until they are used, page by page.

    A large array of numpy's own asks for huge pages, and clearing one of those is a pause.
    """
    size = room * np.dtype(dtype).itemsize
    if sys.platform == "win32":
        return np.frombuffer(mmap.mmap(-1, size), dtype)
    private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS  # a forked process writes to its own copy
    return np.frombuffer(mmap.mmap(-1, size, flags=private), dtype)
