"""Workloads: who is stored, read and changed, in which order; the same for the same seed.

Every workload begins with ``keys`` objects that are stored already, then comes to so many accesses:

* ``read-heavy``: 95 reads of 100, the rest changes; some objects are asked for much more often than
  others, and always the same (Zipf's law);
* ``write-heavy``: new objects four times in ten, changes three times, and reads, mostly of what is
  new;
* ``scan-polluted``: ``read-heavy``, and ten times somebody reads a fifth of all objects in a row;
* ``moving-hotspot``: reads of one small neighbourhood, which moves on twenty times.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal, TypeAlias

Verb: TypeAlias = Literal["store", "read", "change"]

SKEW = 0.9  # exponent of Zipf's law
SCANS, SCANNED = 10, 0.2  # how many scans, and which part of the objects each reads
MOVES, SPOT = 20, 0.04  # how often the hotspot moves, and which part of the objects it is
SIZES = (5.6, 0.7)  # of objects in bytes: mean and deviation of the logarithm
LEAST, MOST = 60, 4000


@dataclass(frozen=True)
class Access:
    """Something done to an object; ``size`` is how many bytes are written, 0 if it is read."""

    verb: Verb
    key: int
    size: int = 0


class Load:
    """Draws accesses. Keys count up from 0 in the order in which objects are stored."""

    def __init__(self, keys: int, count: int, seed: int) -> None:
        self.keys, self.count = keys, count
        self.draw = random.Random(f"workload {seed}")
        self._ranked = self.draw.sample(
            range(keys), keys
        )  # who is popular has nothing to do with age
        self._weights = list(accumulate(1 / (rank + 1) ** SKEW for rank in range(keys)))

    def size(self) -> int:
        """Draw how big an object is."""
        return min(MOST, max(LEAST, int(self.draw.lognormvariate(*SIZES))))

    def first(self) -> Iterator[Access]:
        """Yield the stores before anything is counted."""
        return (Access("store", key, self.size()) for key in range(self.keys))

    def popular(self) -> int:
        """Draw a key by Zipf's law."""
        found: int = self.draw.choices(self._ranked, cum_weights=self._weights)[0]
        return found

    def read_heavy(self) -> Iterator[Access]:
        """Mostly reads."""
        for _ in range(self.count):
            yield self._read_or_change(self.popular(), 0.95)

    def write_heavy(self) -> Iterator[Access]:
        """Mostly writes."""
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
        """Mostly reads, and now and then of everything."""
        length = int(self.keys * SCANNED)
        every = self.count // SCANS
        for number, access in enumerate(self.read_heavy()):
            scan, place = divmod(number, every)
            if place < min(length, every // 2):
                yield Access("read", (scan * length + place) % self.keys)
            else:
                yield access

    def moving_hotspot(self) -> Iterator[Access]:
        """Reads around a place that moves."""
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
