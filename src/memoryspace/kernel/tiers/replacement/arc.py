"""ARC: a balance between recency and frequency that adapts itself."""

from __future__ import annotations

from collections import OrderedDict

from .contract import ReplacementPolicy, already_resident, nothing_resident

_OLDEST = False  # for popitem, positional: the keyword costs a tenth of an eviction


class ARC(ReplacementPolicy):
    """Keys seen once and keys seen again are in two LRU queues; ``target`` is the split.

    Each queue remembers ghosts of the keys it lost. A key that returns while its ghost is
    remembered shows which queue was too short, and moves the target. There are never more ghosts
    than residents. The target is at least one, so that a new key is not evicted at once.
    """

    def __init__(self) -> None:
        self._once: OrderedDict[int, None] = OrderedDict()  # least recently used first
        self._again: OrderedDict[int, None] = OrderedDict()
        self._once_ghosts: OrderedDict[int, None] = OrderedDict()
        self._again_ghosts: OrderedDict[int, None] = OrderedDict()
        self.target = 1.0  # how many of the residents may be keys seen once

    def add(self, key: int) -> None:
        if key in self._once or key in self._again:
            raise already_resident(key)
        if key in self._once_ghosts:
            self._lengthen_once()
            del self._once_ghosts[key]
            self._again[key] = None
        elif key in self._again_ghosts:
            self._shorten_once()
            del self._again_ghosts[key]
            self._again[key] = None
        else:
            self._once[key] = None

    def touch(self, key: int) -> None:
        if key in self._again:
            self._again.move_to_end(key)
        else:
            del self._once[key]
            self._again[key] = None

    def remove(self, key: int) -> None:
        del (self._once if key in self._once else self._again)[key]
        self._trim()

    def evict(self) -> int:
        once, again = self._once, self._again
        if len(once) > self.target or not again:
            if not once:
                raise nothing_resident()
            key, _ = once.popitem(_OLDEST)
            self._once_ghosts[key] = None
        else:
            key, _ = again.popitem(_OLDEST)
            self._again_ghosts[key] = None
        self._trim()
        return key

    def spare(self, key: int) -> None:
        if key in self:
            raise already_resident(key)
        self._once_ghosts.pop(key, None)
        self._again_ghosts.pop(key, None)
        self._again[key] = None

    def _lengthen_once(self) -> None:
        step = max(1.0, len(self._again_ghosts) / len(self._once_ghosts))
        self.target = min(self.target + step, max(1.0, len(self)))

    def _shorten_once(self) -> None:
        step = max(1.0, len(self._once_ghosts) / len(self._again_ghosts))
        self.target = max(1.0, min(self.target, len(self)) - step)

    def _trim(self) -> None:
        """Drop ghosts beyond the number of residents, from the longer side first."""
        once, again = self._once_ghosts, self._again_ghosts
        residents = len(self._once) + len(self._again)
        while len(once) + len(again) > residents:
            if not again or (once and len(self._once) + len(once) > residents):
                once.popitem(_OLDEST)
            else:
                again.popitem(_OLDEST)

    def __len__(self) -> int:
        return len(self._once) + len(self._again)

    def __contains__(self, key: object) -> bool:
        return key in self._again or key in self._once

    def check(self) -> None:
        queues = (self._once, self._again, self._once_ghosts, self._again_ghosts)
        total = sum(len(queue) for queue in queues)
        assert len({key for queue in queues for key in queue}) == total, "a key in two queues"
        assert total <= 2 * len(self), "more ghosts than residents"
        assert self.target >= 1, f"target {self.target} is below one"
