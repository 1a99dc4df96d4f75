"""LRU: least recently used."""

from __future__ import annotations

from collections import OrderedDict

from .contract import ReplacementPolicy, already_resident, nothing_resident


class LRU(ReplacementPolicy):
    """Evicts the key used longest ago. One scan over more keys than fit evicts everything."""

    def __init__(self) -> None:
        self._keys: OrderedDict[int, None] = OrderedDict()  # least recently used first

    def add(self, key: int) -> None:
        if key in self._keys:
            raise already_resident(key)
        self._keys[key] = None

    def touch(self, key: int) -> None:
        self._keys.move_to_end(key)

    def remove(self, key: int) -> None:
        del self._keys[key]

    def evict(self) -> int:
        if not self._keys:
            raise nothing_resident()
        return self._keys.popitem(last=False)[0]

    def spare(self, key: int) -> None:
        self.add(key)

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def check(self) -> None:
        assert len([*self._keys]) == len(self._keys)
