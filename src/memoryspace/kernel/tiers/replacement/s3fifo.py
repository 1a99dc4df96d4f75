"""S3-FIFO: a small trial queue, a main queue, and ghosts of keys evicted from the first."""

from __future__ import annotations

from collections import OrderedDict

from .contract import ReplacementPolicy, already_resident, nothing_resident

MOST_USES = 3  # more would only keep formerly popular keys longer
SMALL_SHARE = 10  # the trial queue may be one part in this many of the residents


class S3FIFO(ReplacementPolicy):
    """A new key is on trial: used twice, it moves to the main queue; otherwise it is evicted soon.

    A key that returns while its ghost is remembered enters the main queue at once. In the main
    queue each use grants one more round. There are never more ghosts than residents.
    """

    def __init__(self) -> None:
        self._small: OrderedDict[int, int] = OrderedDict()  # key -> uses, oldest first
        self._main: OrderedDict[int, int] = OrderedDict()
        self._ghosts: OrderedDict[int, None] = OrderedDict()

    def add(self, key: int) -> None:
        if key in self._small or key in self._main:
            raise already_resident(key)
        if key in self._ghosts:
            del self._ghosts[key]
            self._main[key] = 0
        else:
            self._small[key] = 0

    def touch(self, key: int) -> None:
        queue = self._small if key in self._small else self._main
        uses = queue[key]
        if uses < MOST_USES:
            queue[key] = uses + 1

    def remove(self, key: int) -> None:
        del (self._small if key in self._small else self._main)[key]
        self._trim()

    def evict(self) -> int:
        if not self._small and not self._main:
            raise nothing_resident()
        while True:  # every iteration but the last takes back at least one touch
            victim = self._try_small() if self._is_small_over() else self._try_main()
            if victim is not None:
                self._trim()
                return victim

    def spare(self, key: int) -> None:
        if key in self:
            raise already_resident(key)
        self._ghosts.pop(key, None)
        self._main[key] = 0

    def _is_small_over(self) -> bool:
        small, main = len(self._small), len(self._main)
        return main == 0 or small * SMALL_SHARE > small + main

    def _try_small(self) -> int | None:
        key, uses = self._small.popitem(last=False)
        if uses > 1:
            self._main[key] = 0
            return None
        self._ghosts[key] = None
        return key

    def _try_main(self) -> int | None:
        key, uses = self._main.popitem(last=False)
        if not uses:
            return key
        self._main[key] = uses - 1
        return None

    def _trim(self) -> None:
        residents = len(self._small) + len(self._main)
        while len(self._ghosts) > residents:
            self._ghosts.popitem(last=False)

    def __len__(self) -> int:
        return len(self._small) + len(self._main)

    def __contains__(self, key: object) -> bool:
        return key in self._small or key in self._main

    def check(self) -> None:
        keys = {*self._small, *self._main, *self._ghosts}
        assert len(keys) == len(self) + len(self._ghosts), "a key in two queues"
        assert len(self._ghosts) <= len(self), "more ghosts than residents"
        uses = [*self._small.values(), *self._main.values()]
        assert all(0 <= each <= MOST_USES for each in uses), "uses out of range"
