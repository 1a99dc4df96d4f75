"""Clock (second chance): approximates LRU with one bit per key."""

from __future__ import annotations

from collections import OrderedDict

from .contract import ReplacementPolicy, already_resident, nothing_resident


class Clock(ReplacementPolicy):
    """Keys are in a ring. The hand evicts the first one not used since it last passed."""

    def __init__(self) -> None:
        # The ring, cut open at the hand: keys that the hand has passed are at the end.
        self._used: OrderedDict[int, bool] = OrderedDict()

    def add(self, key: int) -> None:
        if key in self._used:
            raise already_resident(key)
        self._used[key] = False

    def touch(self, key: int) -> None:
        if key not in self._used:
            raise KeyError(key)
        self._used[key] = True

    def remove(self, key: int) -> None:
        del self._used[key]

    def evict(self) -> int:
        if not self._used:
            raise nothing_resident()
        while True:  # every iteration but the last takes back one touch
            key, used = self._used.popitem(last=False)
            if not used:
                return key
            self._used[key] = False

    def spare(self, key: int) -> None:
        self.add(key)  # just behind the hand, as after a second chance

    def __len__(self) -> int:
        return len(self._used)

    def __contains__(self, key: object) -> bool:
        return key in self._used

    def check(self) -> None:
        assert set(self._used.values()) <= {True, False}
