"""Generated workloads: which objects are stored, read and changed, reproducible per seed.

Every workload starts with ``keys`` stored objects, followed by a number of accesses:

* ``read-heavy``: 95 % reads, the rest changes; the popularity of objects follows Zipf's law and
  does not change;
* ``write-heavy``: 40 % new objects, 30 % changes, and reads, mostly of new objects;
* ``scan-polluted``: ``read-heavy``, interrupted by ten scans that each read a fifth of all objects
  in a row;
* ``moving-hotspot``: reads of one small neighbourhood, which moves twenty times.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal, TypeAlias

Verb: TypeAlias = Literal["store", "read", "change"]

SKEW = 0.9  # exponent of Zipf's law
SCANS, SCANNED = 10, 0.2  # number of scans, and the share of the objects each reads
MOVES, SPOT = 20, 0.04  # number of moves, and the share of the objects in the hotspot
SIZES = (5.6, 0.7)  # of object sizes in bytes: mean and deviation of the logarithm
LEAST, MOST = 60, 4000


@dataclass(frozen=True)
class Access:
    """An access to an object; ``size`` is the number of bytes written, 0 for a read."""

    verb: Verb
    key: int
    size: int = 0


class Load:
    """Draws accesses. Keys count up from 0 in the order in which objects are stored."""

    def __init__(self, keys: int, count: int, seed: int) -> None:
        self.keys, self.count = keys, count
        self.draw = random.Random(f"workload {seed}")
        self._ranked = self.draw.sample(range(keys), keys)  # popularity is independent of age
        self._weights = list(accumulate(1 / (rank + 1) ** SKEW for rank in range(keys)))

    def size(self) -> int:
        """Draw the size of an object."""
        return min(MOST, max(LEAST, int(self.draw.lognormvariate(*SIZES))))

    def first(self) -> Iterator[Access]:
        """Yield the stores before measurement starts."""
        return (Access("store", key, self.size()) for key in range(self.keys))

    def popular(self) -> int:
        """Draw a key by Zipf's law."""
        found: int = self.draw.choices(self._ranked, cum_weights=self._weights)[0]
        return found

    def read_heavy(self) -> Iterator[Access]:
        """Yield mostly reads."""
        for _ in range(self.count):
            yield self._read_or_change(self.popular(), 0.95)

    def write_heavy(self) -> Iterator[Access]:
        """Yield mostly writes."""
        newest = self.keys - 1
        for _ in range(self.count):
            chance = self.draw.random()
            if chance < 0.4:
                newest += 1
                yield Access("store", newest, self.size())
            else:
                recent = max(0, newest - int(self.draw.paretovariate(0.6)) + 1)
                yield self._read_or_change(recent, 0.5)

    def scan_polluted(self) -> Iterator[Access]:
        """Yield mostly reads, with occasional scans."""
        length = int(self.keys * SCANNED)
        every = self.count // SCANS
        for number, access in enumerate(self.read_heavy()):
            scan, place = divmod(number, every)
            if place < min(length, every // 2):
                yield Access("read", (scan * length + place) % self.keys)
            else:
                yield access

    def moving_hotspot(self) -> Iterator[Access]:
        """Yield reads around a moving position."""
        width = max(1, int(self.keys * SPOT))
        stay = -(-self.count // MOVES)
        for number in range(self.count):
            if number % stay == 0:
                place = self.draw.randrange(self.keys)
            near = (place + self.draw.randrange(width)) % self.keys
            yield self._read_or_change(
                near if self.draw.random() < 0.9 else self.draw.randrange(self.keys), 0.9
            )

    def _read_or_change(self, key: int, reads: float) -> Access:
        if self.draw.random() < reads:
            return Access("read", key)
        return Access("change", key, self.size())


WORKLOADS: Mapping[str, Callable[[Load], Iterator[Access]]] = {
    "read-heavy": Load.read_heavy,
    "write-heavy": Load.write_heavy,
    "scan-polluted": Load.scan_polluted,
    "moving-hotspot": Load.moving_hotspot,
}
