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

# Keys that are small numbers also stand in a table, which finds many of them at once. It is given
# up for good when they lie too far apart.
_LEAST = 1024
_SPREAD = 8  # keys, for each that is there
_NOWHERE = -1


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
    """Lanes of dicts over stored keys. A key is in one of them at most.

    Without stored keys, the table repeats what the lanes say of the keys it has room for.
    """

    def __init__(self, stored: StoredKeys | None = None) -> None:
        self.lanes: list[dict[int, int]] = _new_lanes()
        self.stored = stored
        self._held = 0  # keys in lanes
        self._table = _new_table(_LEAST) if stored is None else None

    def __contains__(self, key: int) -> bool:
        stored = self.stored
        return key in self.lanes[key % LANES] or (stored is not None and key in stored)

    def put(self, keys: NDArray[np.uint64], slots: Slots) -> None:
        """Take keys in that are not here, each with its slot."""
        lanes = self.lanes
        for key, slot in zip(keys.tolist(), slots.tolist(), strict=True):
            lanes[key % LANES][key] = slot
        self._held += len(keys)
        if self._table is not None and len(keys):
            self._make_room(int(keys.max()) + 1)
            if self._table is not None:
                self._table[keys.view(np.int64)] = slots

    def pop(self, key: int) -> int | None:
        """Take a key out; return its slot, or None."""
        slot = self.lanes[key % LANES].pop(key, None)
        if slot is None:
            return None if self.stored is None else self.stored.pop(key)
        self._held -= 1
        if self._table is not None:
            self._table[key] = _NOWHERE
        return slot

    def pop_many(self, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Take keys out; return the slot of each, -1 for those that are not here."""
        slots = np.full(len(keys), -1) if self.stored is None else self.stored.pop_many(keys)
        for place in np.flatnonzero(slots < 0).tolist():
            slot = self.pop(int(keys[place]))
            slots[place] = -1 if slot is None else slot
        return slots

    def find(self, keys: NDArray[Any]) -> NDArray[np.int64]:
        """Return the slot of each key, -1 for those that are not here."""
        table, lanes = self._table, self.lanes
        if table is not None and len(keys) and keys.min() >= 0 and keys.max() < len(table):
            return table.take(keys.astype(np.int64, copy=False)).astype(np.int64)
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
        assert self._table is None or self._is_told_by_table(found), "the table says otherwise"
        return found

    @property
    def nbytes(self) -> int:
        """Bytes held, the dicts and their ints included."""
        shards = self._shards()
        entries = sum(map(len, shards))
        held = sum(map(sys.getsizeof, (self.lanes, *shards))) + 2 * _INT_BYTES * entries
        held += 0 if self._table is None else self._table.nbytes
        return held + (0 if self.stored is None else self.stored.nbytes)

    def _shards(self) -> list[dict[int, int]]:
        return list({id(lane): lane for lane in self.lanes}.values())

    def _make_room(self, end: int) -> None:
        """Let the table reach so far, or give it up."""
        assert self._table is not None
        if end <= len(self._table):
            return
        if end > _LEAST + _SPREAD * self._held:
            self._table = None
            return
        wider = _new_table(max(end, 2 * len(self._table)))
        wider[: len(self._table)] = self._table
        self._table = wider

    def _is_told_by_table(self, found: dict[int, int]) -> bool:
        assert self._table is not None
        told = {key: slot for key, slot in enumerate(self._table.tolist()) if slot != _NOWHERE}
        return told == found


def _new_table(room: int) -> NDArray[np.int32]:
    return np.full(room, _NOWHERE, np.int32)


def _new_lanes() -> list[dict[int, int]]:
    shards: list[dict[int, int]] = [{} for _ in range(_SHARDS)]
    borders = np.exp2(np.arange(LANES) / LANES) - 1  # from 0 to 1, at first slowly
    return [shards[int(border * _SHARDS)] for border in borders]
