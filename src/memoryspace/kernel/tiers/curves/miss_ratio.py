"""``MissRatioCurve``: the miss ratio of an LRU cache of any size, from a sample (SHARDS).

The *stack distance* of an access is the total size of the keys used since the last access to its
key. The access hits in every cache of at least that size. The miss ratio at a size is the share of
larger distances.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate

from ....errors import InvalidInput

MAX_SAMPLES = 8192
MAX_BUCKETS = 4096  # of distances; with more, the resolution is halved

_HASHES = 1 << 32
_MASK = _HASHES - 1
_FIRST_TICKS = 1024


class MissRatioCurve:
    """The miss ratio of an LRU cache at every size, from the accesses of one run.

    Keys are sampled by their hash, so a sampled key is seen at each of its accesses. With
    ``rate=1.0``, up to ``max_samples`` keys and ``MAX_BUCKETS`` distances, the curve is exact.
    Sizes of objects and of caches are in the same unit, such as bytes or pages.

    Args:
        rate: The share of keys to sample, above 0 and at most 1.
        max_samples: The most keys to sample. With more keys the rate is halved as often as needed.
        seed: Varies which keys are sampled.
    """

    def __init__(
        self, rate: float = 0.01, *, max_samples: int = MAX_SAMPLES, seed: int = 0
    ) -> None:
        if not 0 < rate <= 1:
            raise InvalidInput(f"rate must be more than 0 and at most 1, got {rate}")
        if max_samples < 1:
            raise InvalidInput(f"max_samples must be 1 or more, got {max_samples}")
        self.accesses = 0
        self._seed = seed
        self._max_samples = max_samples
        self._threshold = max(1, round(rate * _HASHES))  # keys with a hash below it are sampled
        self._stack = _RecencyStack()
        self._distances = _Distances()

    @property
    def rate(self) -> float:
        """The share of keys that is sampled now."""
        return self._threshold / _HASHES

    def record(self, key: int, size: int = 1) -> None:
        """Count one access to an object of this size."""
        if size < 1:
            raise InvalidInput(f"the size of key {key} must be 1 or more, got {size}")
        self.accesses += 1
        if hash((key, self._seed)) & _MASK < self._threshold:
            self._sample(key, size)

    def remove(self, key: int) -> None:
        """Note that an object was freed: it takes no space in any cache any more."""
        self._stack.remove(key)

    def miss_ratio(self, cache_size: int) -> float:
        """Return the share of accesses that a cache of this size would have missed."""
        return self._ratios([cache_size])[0]

    def curve(self, points: int = 32) -> list[tuple[int, float]]:
        """Return up to ``points`` pairs (cache size, miss ratio), with sizes in geometric steps.

        The last size is the smallest at which only first accesses miss.
        """
        if points < 2:
            raise InvalidInput(f"points must be 2 or more, got {points}")
        largest = self._distances.largest()
        sizes = sorted({round(largest ** (step / (points - 1))) for step in range(points)})
        return [*zip(sizes, self._ratios(sizes), strict=True)]

    def check(self) -> None:
        """Verify every invariant; raise ``AssertionError`` if one is broken."""
        self._stack.check()
        assert len(self._stack) <= self._max_samples, "too many samples"
        assert len(self._distances) <= MAX_BUCKETS, "too many buckets"
        assert all(self._is_sampled(key) for key in self._stack), "an unsampled key"

    def _is_sampled(self, key: int) -> bool:
        return hash((key, self._seed)) & _MASK < self._threshold

    def _sample(self, key: int, size: int) -> None:
        scale = _HASHES / self._threshold
        distance = self._stack.push(key, size)
        self._distances.count(None if distance is None else round(distance * scale), scale)
        while len(self._stack) > self._max_samples:
            self._halve()

    def _halve(self) -> None:
        self._threshold //= 2
        for key in [key for key in self._stack if not self._is_sampled(key)]:
            self._stack.remove(key)

    def _ratios(self, cache_sizes: list[int]) -> list[float]:
        """Return the miss ratios, corrected for a sample with too few or too many busy keys.

        Busy keys hit at small sizes, so the difference in accesses is counted as hits.
        """
        missing = self.accesses - self._distances.total
        hits = self._distances.counts_within(cache_sizes)
        accesses = max(1, self.accesses)
        return [
            1.0 if size < 1 else min(1.0, max(0.0, 1 - (count + missing) / accesses))
            for size, count in zip(cache_sizes, hits, strict=True)
        ]


class _Distances:
    """How often each stack distance was seen, in a bounded number of buckets."""

    def __init__(self) -> None:
        self.total = 0.0
        self._grain = 1
        self._counts: dict[int, float] = {}  # bucket -> count; bucket b ends at b * grain

    def count(self, distance: int | None, weight: float) -> None:
        """Count an access at this distance, ``None`` for the first access to a key."""
        self.total += weight
        if distance is None:
            return
        bucket = -(-distance // self._grain)
        self._counts[bucket] = self._counts.get(bucket, 0.0) + weight
        while len(self._counts) > MAX_BUCKETS:
            self._coarsen()

    def largest(self) -> int:
        return max(self._counts, default=1) * self._grain

    def counts_within(self, sizes: list[int]) -> list[float]:
        """Return, for each size, how many accesses have a distance not above it."""
        buckets = sorted(self._counts)
        sums = [0.0, *accumulate(self._counts[bucket] for bucket in buckets)]
        return [sums[bisect_right(buckets, size // self._grain)] for size in sizes]

    def _coarsen(self) -> None:
        self._grain *= 2
        counts: dict[int, float] = {}
        for bucket, count in self._counts.items():
            counts[(bucket + 1) // 2] = counts.get((bucket + 1) // 2, 0.0) + count
        self._counts = counts

    def __len__(self) -> int:
        return len(self._counts)


class _RecencyStack:
    """Keys by their last access, with the sizes above each key in a Fenwick tree over ticks."""

    def __init__(self) -> None:
        self._entries: dict[int, tuple[int, int]] = {}  # key -> (tick, size), oldest first
        self._total = 0
        self._tick = 0
        self._tree = [0] * (_FIRST_TICKS + 1)  # 1-based; the sizes of the entries at their ticks

    def push(self, key: int, size: int) -> int | None:
        """Put a key on top; return its stack distance before, or ``None`` if it is new."""
        entry = self._entries.get(key)
        distance = None if entry is None else self._total - self._sum_before(entry[0])
        self.remove(key)
        if self._tick == len(self._tree) - 1:
            self._compact()
        self._tick += 1
        self._entries[key] = (self._tick, size)
        self._add(self._tick, size)
        return distance

    def remove(self, key: int) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._add(entry[0], -entry[1])

    def __iter__(self) -> Iterator[int]:
        return iter(self._entries)

    def _add(self, tick: int, size: int) -> None:
        self._total += size
        tree, last = self._tree, len(self._tree) - 1
        while tick <= last:
            tree[tick] += size
            tick += tick & -tick

    def _sum_before(self, tick: int) -> int:
        tree, tick, total = self._tree, tick - 1, 0
        while tick:
            total += tree[tick]
            tick &= tick - 1
        return total

    def _compact(self) -> None:
        """Renumber the entries without gaps, leaving at least as many ticks free."""
        entries = enumerate(self._entries.items(), start=1)
        self._entries = {key: (tick, size) for tick, (key, (_, size)) in entries}
        self._tick = len(self._entries)
        self._tree = [0] * (max(_FIRST_TICKS, 2 * self._tick) + 1)
        self._total = 0
        for tick, size in self._entries.values():
            self._add(tick, size)

    def __len__(self) -> int:
        return len(self._entries)

    def check(self) -> None:
        entries = [*self._entries.values()]
        ticks = [tick for tick, _ in entries]
        assert ticks == sorted(set(ticks)), "entries out of order"
        assert all(0 < tick <= self._tick < len(self._tree) for tick in ticks), "a tick off"
        sums = [0, *accumulate(size for _, size in entries)]
        assert self._total == sums[-1], "the total does not add up"
        assert [self._sum_before(tick) for tick in ticks] == sums[:-1], "the tree does not add up"
