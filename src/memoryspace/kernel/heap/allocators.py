"""Allocators: indexes over the free blocks of a heap that choose which one to use.

An allocator knows only where the free blocks are. The heap owns the bytes: it splits, merges and
counts. All sizes are in granules of 16 bytes, the unit of allocation.

* ``SegregatedFitAllocator``: bins by size, constant time, a block at most 1/16 too big (default).
* ``BestFitAllocator``: exactly the smallest block that fits, the lowest of these.
* ``FirstFitAllocator``: exactly the lowest block that fits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from bisect import bisect_left, insort
from heapq import heappop, heappush

NOWHERE = -1

_FEW = 8  # how many blocks of one bin are examined before a bigger block is taken
_END = 0xFFFFFFFF


class Allocator(ABC):
    """An index over free blocks. ``find`` changes nothing: the heap removes what it takes."""

    # Whether freed blocks may wait for an allocation of the same size before they are merged.
    defers_merging = False

    @abstractmethod
    def bind(self, words: memoryview, granules: int) -> None:
        """Start over, empty, for a heap of so many granules; ``words`` is its memory."""

    @abstractmethod
    def add(self, start: int, size: int) -> None:
        """Add a free block."""

    @abstractmethod
    def remove(self, start: int, size: int) -> None:
        """Remove a free block that is being taken or merged."""

    @abstractmethod
    def find(self, size: int) -> int:
        """Return the start of a free block of at least this size, or ``NOWHERE``."""

    def search(self, size: int) -> int:
        """Return what ``find`` does, but examine every block. The last resort."""
        return self.find(size)

    @abstractmethod
    def largest(self) -> int:
        """Return the size of the largest free block, 0 if there is none."""


class SegregatedFitAllocator(Allocator):
    """Two-level segregated fit: a bin for each 1/16 of a power of two, one bitmap over the bins.

    Blocks of a bin are linked through their own free memory: word 1 is the next block, word 2 the
    previous one. Nothing is stored per block outside the arena.
    """

    defers_merging = True

    def bind(self, words: memoryview, granules: int) -> None:
        self._words = words
        self._heads = [_END] * (bin_of(max(granules, 32)) + 17)
        self._bitmap = 0

    def add(self, start: int, size: int) -> None:
        words, heads, index = self._words, self._heads, bin_of(size)
        head = heads[index]
        place = start << 2
        words[place + 1] = head
        words[place + 2] = _END
        if head == _END:
            self._bitmap |= 1 << index
        else:
            words[(head << 2) + 2] = start
        heads[index] = start

    def remove(self, start: int, size: int) -> None:
        words, index = self._words, bin_of(size)
        place = start << 2
        after, before = words[place + 1], words[place + 2]
        if after != _END:
            words[(after << 2) + 2] = before
        if before != _END:
            words[(before << 2) + 1] = after
            return
        self._heads[index] = after
        if after == _END:
            self._bitmap &= ~(1 << index)

    def find(self, size: int) -> int:
        if not self._bitmap:
            return NOWHERE
        index = bin_of(size)
        exact = size < 32
        bins = self._bitmap >> (index if exact else index + 1)
        if not exact:
            fitting = self._first_fitting(index, size)
            if fitting != NOWHERE:
                return fitting
            index += 1
        if not bins:
            return NOWHERE
        return self._heads[index + (bins & -bins).bit_length() - 1]

    def search(self, size: int) -> int:
        words, start = self._words, self._heads[bin_of(size)]
        while start != _END and words[start << 2] >> 2 < size:
            start = words[(start << 2) + 1]
        return self.find(size) if start == _END else start

    def largest(self) -> int:
        if not self._bitmap:
            return 0
        words, start, most = self._words, self._heads[self._bitmap.bit_length() - 1], 0
        while start != _END:
            most = max(most, words[start << 2] >> 2)
            start = words[(start << 2) + 1]
        return most

    def _first_fitting(self, index: int, size: int) -> int:
        """Examine the first few blocks of a bin, whose blocks may be a little too small."""
        words, start = self._words, self._heads[index]
        for _ in range(_FEW):
            if start == _END:
                break
            if words[start << 2] >> 2 >= size:
                return start
            start = words[(start << 2) + 1]
        return NOWHERE


def bin_of(size: int) -> int:
    """Return the bin of a size: one for each size below 32, then 16 to each power of two."""
    if size < 32:
        return size
    power = size.bit_length() - 1
    return ((power - 3) << 4) + ((size >> (power - 4)) & 15)


class BestFitAllocator(Allocator):
    """The distinct free sizes in order, and for each a heap of the starts of its blocks.

    A block that is removed from deep inside a heap stays there until it reaches the top, or until
    more than half of the heap consists of such blocks.
    """

    def bind(self, words: memoryview, granules: int) -> None:
        self._sizes: list[int] = []
        self._starts: dict[int, list[int]] = {}
        self._count: dict[int, int] = {}
        self._free: dict[int, int] = {}

    def add(self, start: int, size: int) -> None:
        if size not in self._starts:
            self._starts[size] = []
            self._count[size] = 0
            insort(self._sizes, size)
        heappush(self._starts[size], start)
        self._count[size] += 1
        self._free[start] = size

    def remove(self, start: int, size: int) -> None:
        del self._free[start]
        self._count[size] -= 1
        starts = self._starts[size]
        if not self._count[size]:
            del self._starts[size], self._count[size]
            del self._sizes[bisect_left(self._sizes, size)]
        elif len(starts) > 2 * self._count[size] + 16:
            starts[:] = sorted({each for each in starts if self._free.get(each) == size})
        else:
            while self._free.get(starts[0]) != size:
                heappop(starts)

    def find(self, size: int) -> int:
        place = bisect_left(self._sizes, size)
        return self._starts[self._sizes[place]][0] if place < len(self._sizes) else NOWHERE

    def largest(self) -> int:
        return self._sizes[-1] if self._sizes else 0


class FirstFitAllocator(Allocator):
    """A tree of the largest free size over regions of the arena; small maps inside a region."""

    REGIONS = 1 << 14
    SMALLEST_REGION = 12  # 2**12 granules: 64 KiB

    def bind(self, words: memoryview, granules: int) -> None:
        self._shift = max(self.SMALLEST_REGION, (granules // self.REGIONS).bit_length())
        regions = (granules >> self._shift) + 1
        self._leaves = 1 << (regions - 1).bit_length()
        self._tree = array("q", bytes(16 * self._leaves))
        self._blocks: dict[int, dict[int, int]] = {}

    def add(self, start: int, size: int) -> None:
        region = start >> self._shift
        self._blocks.setdefault(region, {})[start] = size
        if size > self._tree[self._leaves + region]:
            self._set(region, size)

    def remove(self, start: int, size: int) -> None:
        region = start >> self._shift
        blocks = self._blocks[region]
        del blocks[start]
        if size == self._tree[self._leaves + region]:
            self._set(region, max(blocks.values(), default=0))

    def find(self, size: int) -> int:
        tree, node = self._tree, 1
        if tree[node] < size:
            return NOWHERE
        while node < self._leaves:
            node *= 2
            if tree[node] < size:
                node += 1
        blocks = self._blocks[node - self._leaves]
        return min(start for start, free in blocks.items() if free >= size)

    def largest(self) -> int:
        return self._tree[1]

    def _set(self, region: int, size: int) -> None:
        tree, node = self._tree, self._leaves + region
        tree[node] = size
        while node > 1:
            node //= 2
            left, right = tree[2 * node], tree[2 * node + 1]
            tree[node] = left if left > right else right
