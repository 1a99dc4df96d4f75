"""The way from a key to its slot: dicts for what came lately, sorted arrays for what was stored.

Nothing here is a Python object per document except two ints in a dict, which CPython's collector
does not look at; and a million stored documents need no dict at all.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

Slots = NDArray[np.uint32]

# A dict stops the world while it grows: the more documents, the longer. So there are many. Keys
# spread over the lanes (a prime: multiples of anything spread, too), and lanes share a dict in
# unequal numbers, from n to 2 n of them, because equal dicts would all grow at the same moment.
LANES = 2039
_SHARDS = 128
_INT_BYTES = 32


class StoredKeys:
    """Keys that were read, rising, with their slots; keys may leave, none come."""

    def __init__(self, keys: NDArray[np.uint64], slots: Slots) -> None:
        self.keys = keys
        self._slots = slots
        self._gone = np.zeros(len(keys), np.bool_)
        self._last = int(keys[-1]) if len(keys) else -1

    def __contains__(self, key: int) -> bool:
        return self._place(key) >= 0

    def pop(self, key: int) -> int | None:
        """Take a key out; return its slot, or None."""
        place = self._place(key)
        if place < 0:
            return None
        self._gone[place] = True
        return int(self._slots[place])

    def find(self, keys: NDArray[Any]) -> NDArray[np.int64]:
        """Return the slot of each key, -1 for those that are not here."""
        if not len(self.keys):
            return np.full(len(keys), -1)
        wanted = keys.astype(np.uint64)
        places = self.keys.searchsorted(wanted)
        is_here = self.keys.take(places, mode="clip") == wanted
        is_here &= ~self._gone.take(places, mode="clip")
        is_here &= keys >= 0
        return np.where(is_here, self._slots.take(places, mode="clip").astype(np.int64), -1)

    def pop_many(self, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Take keys out; return the slot of each, -1 for those that are not here."""
        slots = self.find(keys)
        self._gone[self.keys.searchsorted(keys[slots >= 0])] = True
        return slots

    def living(self) -> NDArray[np.uint64]:
        """Return the keys that have not left."""
        return self.keys[~self._gone]

    def items(self) -> dict[int, int]:
        """Return slots by key; for tests."""
        keys, slots = self.living(), self._slots[~self._gone]
        return dict(zip(keys.tolist(), slots.tolist(), strict=True))

    @property
    def nbytes(self) -> int:
        """Bytes held in memory: the stored arrays are the system's to hold or to drop."""
        return self._gone.nbytes

    def _place(self, key: int) -> int:
        if not 0 <= key <= self._last:
            return -1
        place = int(self.keys.searchsorted(np.uint64(key)))
        return place if int(self.keys[place]) == key and not self._gone[place] else -1


class SlotsByKey:
    """Lanes of dicts over stored keys. A key is in one of them at most."""

    def __init__(self, stored: StoredKeys | None = None) -> None:
        self.lanes: list[dict[int, int]] = _new_lanes()
        self.stored = stored

    def __contains__(self, key: int) -> bool:
        stored = self.stored
        return key in self.lanes[key % LANES] or (stored is not None and key in stored)

    def pop(self, key: int) -> int | None:
        """Take a key out; return its slot, or None."""
        slot = self.lanes[key % LANES].pop(key, None)
        if slot is None and self.stored is not None:
            return self.stored.pop(key)
        return slot

    def pop_many(self, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Take keys out; return the slot of each, -1 for those that are not here."""
        stored, lanes = self.stored, self.lanes
        slots = np.full(len(keys), -1) if stored is None else stored.pop_many(keys)
        for place in np.flatnonzero(slots < 0).tolist():
            key = int(keys[place])
            slots[place] = lanes[key % LANES].pop(key, -1)
        return slots

    def find(self, keys: NDArray[Any]) -> NDArray[np.int64]:
        """Return the slot of each key, -1 for those that are not here."""
        lanes = self.lanes
        slots = np.array([lanes[key % LANES].get(key, -1) for key in keys.tolist()], np.int64)
        if self.stored is not None:
            missing = np.flatnonzero(slots < 0)
            slots[missing] = self.stored.find(keys[missing])
        return slots

    def keys(self) -> NDArray[np.uint64]:
        """Return all keys, in no order."""
        parts = [np.fromiter(shard, np.uint64, len(shard)) for shard in self._shards()]
        return np.concatenate(parts if self.stored is None else [self.stored.living(), *parts])

    def items(self) -> dict[int, int]:
        """Return slots by key; for tests."""
        found = {} if self.stored is None else self.stored.items()
        for shard in self._shards():
            for key, slot in shard.items():
                assert self.lanes[key % LANES] is shard, "a key in the wrong lane"
                assert key not in found, "a key is here twice"
                found[key] = slot
        return found

    @property
    def nbytes(self) -> int:
        """Bytes held, the dicts and their ints included."""
        shards = self._shards()
        entries = sum(map(len, shards))
        held = sum(map(sys.getsizeof, (self.lanes, *shards))) + 2 * _INT_BYTES * entries
        return held + (0 if self.stored is None else self.stored.nbytes)

    def _shards(self) -> list[dict[int, int]]:
        return list({id(lane): lane for lane in self.lanes}.values())


def _new_lanes() -> list[dict[int, int]]:
    shards: list[dict[int, int]] = [{} for _ in range(_SHARDS)]
    borders = np.exp2(np.arange(LANES) / LANES) - 1  # from 0 to 1, at first slowly
    return [shards[int(border * _SHARDS)] for border in borders]
