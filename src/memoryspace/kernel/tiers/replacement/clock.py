"""Second chance: LRU for the price of one bit."""

from __future__ import annotations

from collections import OrderedDict

from .contract import ReplacementPolicy, already_resident, nothing_resident


class Clock(ReplacementPolicy):
    """Keys stand in a ring; the hand takes the first one not used since it last came by."""

    def __init__(self) -> None:
        # The ring, cut open at the hand: who the hand has passed stands at the end.
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
        while True:  # every turn but the last takes back one touch
            key, used = self._used.popitem(last=False)
            if not used:
                return key
            self._used[key] = False

    def spare(self, key: int) -> None:
        self.add(key)  # just behind the hand, where a second chance puts it

    def __len__(self) -> int:
        return len(self._used)

    def __contains__(self, key: object) -> bool:
        return key in self._used

    def check(self) -> None:
        assert set(self._used.values()) <= {True, False}
