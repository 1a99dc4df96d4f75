"""SIEVE: a queue in which keys keep their places, and a hand that walks through it."""

from __future__ import annotations

from collections import OrderedDict

from .contract import ReplacementPolicy, already_resident, nothing_resident


class SIEVE(ReplacementPolicy):
    """The hand walks from old to new and evicts the first key not used since its last pass.

    Unlike in ``Clock``, keys that are passed keep their places, so new keys are tried before older
    popular ones.
    """

    def __init__(self) -> None:
        # The queue, oldest first, is `_passed` then `_ahead`; the hand is between them. `_ahead` is
        # empty only if both are: after the newest key, the hand starts again at the oldest.
        self._passed: OrderedDict[int, bool] = OrderedDict()
        self._ahead: OrderedDict[int, bool] = OrderedDict()

    def add(self, key: int) -> None:
        if key in self._ahead or key in self._passed:
            raise already_resident(key)
        self._ahead[key] = False

    def touch(self, key: int) -> None:
        if key in self._ahead:
            self._ahead[key] = True
        elif key in self._passed:
            self._passed[key] = True
        else:
            raise KeyError(key)

    def remove(self, key: int) -> None:
        if key in self._passed:
            del self._passed[key]
        else:
            del self._ahead[key]
            self._wrap()

    def evict(self) -> int:
        if not self._ahead:
            raise nothing_resident()
        while True:  # every iteration but the last takes back one touch
            key, used = self._ahead.popitem(last=False)
            if used:
                self._passed[key] = False
            self._wrap()
            if not used:
                return key

    def spare(self, key: int) -> None:
        if key in self:
            raise already_resident(key)
        self._passed[key] = False  # as if the hand had found it used
        self._wrap()

    def _wrap(self) -> None:
        if not self._ahead:
            self._ahead, self._passed = self._passed, self._ahead

    def __len__(self) -> int:
        return len(self._ahead) + len(self._passed)

    def __contains__(self, key: object) -> bool:
        return key in self._ahead or key in self._passed

    def check(self) -> None:
        assert not self._ahead.keys() & self._passed.keys(), "a key on both sides of the hand"
        assert self._ahead or not self._passed, "the hand is past the newest key"
