"""The mapping from keys to slots: dicts for recent documents, sorted arrays for loaded ones.

The only Python objects per document are two ints in a dict, which CPython's garbage collector does
not traverse. A million loaded documents need no dict at all.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

Slots = NDArray[np.uint32]

# A dict pauses while it grows, longer the larger it is. So there are many. Keys are spread over
# lanes (a prime number, so that multiples spread, too). Lanes share dicts in unequal numbers, from
# n to 2 n, because dicts of equal size would all grow at the same moment.
LANES = 2039
_SHARDS = 128
_INT_BYTES = 32

# Small keys are also in a table, which finds many of them at once. It is dropped for good when the
# keys become too sparse.
_LEAST = 1024
_SPREAD = 8  # table entries per key
_NOWHERE = -1


class StoredKeys:
    """Loaded keys, rising, with their slots. Keys can be removed but not added."""

    def __init__(self, keys: NDArray[np.uint64], slots: Slots) -> None:
        self.keys = keys
        self._slots = slots
        self._gone = np.zeros(len(keys), np.bool_)
        self._last = int(keys[-1]) if len(keys) else -1

    def __contains__(self, key: int) -> bool:
        return self._place(key) >= 0

    def pop(self, key: int) -> int | None:
        """Remove a key; return its slot, or ``None``."""
        place = self._place(key)
        if place < 0:
            return None
        self._gone[place] = True
        return int(self._slots[place])

    def find(self, keys: NDArray[Any]) -> NDArray[np.int64]:
        """Return the slot of each key, -1 for unknown keys."""
        if not len(self.keys):
            return np.full(len(keys), -1)
        wanted = keys.astype(np.uint64)
        places = self.keys.searchsorted(wanted)
        is_here = self.keys.take(places, mode="clip") == wanted
        is_here &= ~self._gone.take(places, mode="clip")
        is_here &= keys >= 0
        return np.where(is_here, self._slots.take(places, mode="clip").astype(np.int64), -1)

    def pop_many(self, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Remove keys; return the slot of each, -1 for unknown keys."""
        slots = self.find(keys)
        self._gone[self.keys.searchsorted(keys[slots >= 0])] = True
        return slots

    def living(self) -> NDArray[np.uint64]:
        """Return the keys that were not removed."""
        return self.keys[~self._gone]

    def items(self) -> dict[int, int]:
        """Return slots by key. Meant for tests."""
        keys, slots = self.living(), self._slots[~self._gone]
        return dict(zip(keys.tolist(), slots.tolist(), strict=True))

    @property
    def nbytes(self) -> int:
        """The bytes held in memory; the mapped arrays are left to the system's page cache."""
        return self._gone.nbytes

    def _place(self, key: int) -> int:
        if not 0 <= key <= self._last:
            return -1
        place = int(self.keys.searchsorted(np.uint64(key)))
        return place if int(self.keys[place]) == key and not self._gone[place] else -1


class SlotsByKey:
    """Lanes of dicts on top of loaded keys. A key is in at most one of them.

    Without loaded keys, the table repeats the lanes for all keys below its length.
    """

    def __init__(self, stored: StoredKeys | None = None) -> None:
        self.lanes: list[dict[int, int]] = _new_lanes()
        self.stored = stored
        self._held = 0  # the number of keys in lanes
        self._table = _new_table(_LEAST) if stored is None else None

    def __contains__(self, key: int) -> bool:
        stored = self.stored
        return key in self.lanes[key % LANES] or (stored is not None and key in stored)

    def put(self, keys: NDArray[np.uint64], slots: Slots) -> None:
        """Add new keys, each with its slot."""
        lanes = self.lanes
        for key, slot in zip(keys.tolist(), slots.tolist(), strict=True):
            lanes[key % LANES][key] = slot
        self._held += len(keys)
        if self._table is not None and len(keys):
            self._grow_table(int(keys.max()) + 1)
            if self._table is not None:
                self._table[keys.view(np.int64)] = slots

    def pop(self, key: int) -> int | None:
        """Remove a key; return its slot, or ``None``."""
        slot = self.lanes[key % LANES].pop(key, None)
        if slot is None:
            return None if self.stored is None else self.stored.pop(key)
        self._held -= 1
        if self._table is not None:
            self._table[key] = _NOWHERE
        return slot

    def pop_many(self, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Remove keys; return the slot of each, -1 for unknown keys."""
        slots = np.full(len(keys), -1) if self.stored is None else self.stored.pop_many(keys)
        for place in np.flatnonzero(slots < 0).tolist():
            slot = self.pop(int(keys[place]))
            slots[place] = -1 if slot is None else slot
        return slots

    def find(self, keys: NDArray[Any]) -> NDArray[np.int64]:
        """Return the slot of each key, -1 for unknown keys."""
        table, lanes = self._table, self.lanes
        if table is not None and len(keys) and keys.min() >= 0 and keys.max() < len(table):
            return table.take(keys.astype(np.int64, copy=False)).astype(np.int64)
        slots = np.array([lanes[key % LANES].get(key, -1) for key in keys.tolist()], np.int64)
        if self.stored is not None:
            missing = np.flatnonzero(slots < 0)
            slots[missing] = self.stored.find(keys[missing])
        return slots

    def keys(self) -> NDArray[np.uint64]:
        """Return all keys, in no particular order."""
        parts = [np.fromiter(shard, np.uint64, len(shard)) for shard in self._shards()]
        return np.concatenate(parts if self.stored is None else [self.stored.living(), *parts])

    def items(self) -> dict[int, int]:
        """Return slots by key. Meant for tests."""
        found = {} if self.stored is None else self.stored.items()
        for shard in self._shards():
            for key, slot in shard.items():
                assert self.lanes[key % LANES] is shard, "a key in the wrong lane"
                assert key not in found, "a key is here twice"
                found[key] = slot
        assert self._table is None or self._is_in_table(found), "the table differs from the lanes"
        return found

    @property
    def nbytes(self) -> int:
        """The bytes held, including the dicts and their ints."""
        shards = self._shards()
        entries = sum(map(len, shards))
        held = sum(map(sys.getsizeof, (self.lanes, *shards))) + 2 * _INT_BYTES * entries
        held += 0 if self._table is None else self._table.nbytes
        return held + (0 if self.stored is None else self.stored.nbytes)

    def _shards(self) -> list[dict[int, int]]:
        return list({id(lane): lane for lane in self.lanes}.values())

    def _grow_table(self, end: int) -> None:
        """Grow the table to ``end`` entries, or drop it if the keys are too sparse."""
        assert self._table is not None
        if end <= len(self._table):
            return
        if end > _LEAST + _SPREAD * self._held:
            self._table = None
            return
        wider = _new_table(max(end, 2 * len(self._table)))
        wider[: len(self._table)] = self._table
        self._table = wider

    def _is_in_table(self, found: dict[int, int]) -> bool:
        assert self._table is not None
        listed = {key: slot for key, slot in enumerate(self._table.tolist()) if slot != _NOWHERE}
        return listed == found


def _new_table(size: int) -> NDArray[np.int32]:
    return np.full(size, _NOWHERE, np.int32)


def _new_lanes() -> list[dict[int, int]]:
    shards: list[dict[int, int]] = [{} for _ in range(_SHARDS)]
    borders = np.exp2(np.arange(LANES) / LANES) - 1  # from 0 to 1, at first slowly
    return [shards[int(border * _SHARDS)] for border in borders]
