"""``MemorySpace``: a heap of real bytes. Blocks are cut from one arena, freed and merged.

The arena reserves address space for the whole capacity; the system commits memory only where it
was touched. Each block starts with 8 bytes: its size and flags, and its owner. A free block
ends with its size again, so both neighbours of a block are found in constant time and merged when
it is freed. Nothing is kept per block outside the arena, so a million blocks cost CPython nothing.

Small blocks that are freed wait, unmerged, for the next allocation of exactly their size (with the
default allocator). They are merged when they become many or when something does not fit.

Not thread-safe: the manager above holds the lock.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ...errors import InvalidInput, OutOfSpace
from .allocators import NOWHERE, Allocator, SegregatedFitAllocator

GRANULE = 16
HEADER = 8
MAX_CAPACITY = 1 << 36  # 64 GiB: a granule's number fits into 32 bits
NO_OWNER = 0xFFFFFFFF  # the owner of a freed block that is not merged yet

_USED = 1
_BEFORE_IS_FREE = 2
_QUICK_SIZES = 257  # blocks up to 4 KiB may wait unmerged
_DEFERRED_SHARE = 16  # waiting blocks may hold 1/16 of what is allocated before some are merged
_DEFERRED_FREELY = 1 << 12  # granules; below this, and 1/64 of the heap, nothing is merged early


class Segment(NamedTuple):
    """A contiguous part of the arena: its start and its size in bytes."""

    start: int
    size: int


class HeapSnapshot(NamedTuple):
    """A map of the heap: what is allocated and what is free, in address order."""

    allocated: list[Segment]
    free: list[Segment]


class MemorySpace:
    """A heap of ``capacity`` bytes.

    A block takes 8 bytes more than its contents, rounded up to 16: ``allocated()`` and
    ``available()`` count whole blocks.

    Args:
        capacity: How many bytes the heap has, rounded down to 16; at most 64 GiB.
        allocator: Chooses free blocks (default: ``SegregatedFitAllocator``).

    Raises:
        InvalidInput: ``capacity`` is out of range.
        OutOfSpace: The system does not grant the address space.

    Examples:
        >>> heap = MemorySpace(1 << 20)
        >>> address = heap.allocate(100)
    """

    def __init__(self, capacity: int, allocator: Allocator | None = None) -> None:
        if not isinstance(capacity, int) or isinstance(capacity, bool):
            raise TypeError(f"capacity must be an int, got {type(capacity).__name__}")
        if not GRANULE <= capacity <= MAX_CAPACITY:
            raise InvalidInput(
                f"capacity must be from {GRANULE} bytes to {MAX_CAPACITY} (64 GiB), got {capacity}"
            )
        self._limit = capacity // GRANULE
        self.capacity = self._limit * GRANULE
        self._allocator = SegregatedFitAllocator() if allocator is None else allocator
        self._arena = _reserve(self.capacity)
        self._bytes = memoryview(self._arena)
        self._words = self._bytes.cast("I")
        self._deferred_freely = min(_DEFERRED_FREELY, self._limit >> 6)
        self._quick: list[list[int]] = [[] for _ in range(_QUICK_SIZES)]
        self._start_over(0)

    def _start_over(self, top: int) -> None:
        """Drop all free blocks: everything below ``top`` is allocated, everything above is free."""
        self._top = top  # above it, the arena is one free stretch that the allocator does not know
        self._used = top
        self._deferred = 0
        self._drain_class = 0
        for waiting in self._quick:
            waiting.clear()
        self._allocator.bind(self._words, self._limit)

    def allocate(self, size: int, owner: int = 0) -> int:
        """Return the address of a new block of ``size`` bytes; ``OutOfSpace`` if none is free."""
        if size < 0 or not 0 <= owner < NO_OWNER:
            raise _unusable(size, owner)
        need = (size + 23) >> 4  # GRANULE and HEADER, as the fewest steps
        if need < _QUICK_SIZES and self._quick[need]:
            start = self._quick[need].pop()
            self._deferred -= need
        else:
            start = self._carve(need)
            if start == NOWHERE:
                raise OutOfSpace(
                    f"no free block of {size} bytes: {self.available()} of {self.capacity} bytes "
                    f"are free, the largest block has {self.largest_free()}"
                )
        self._used += need
        self._words[(start << 2) + 1] = owner
        return (start << 4) + 8

    def deallocate(self, address: int) -> None:
        """Free a block."""
        words = self._words
        place = (address - 8) >> 2
        start = place >> 2
        if address & 15 != 8 or not 0 <= start < self._top:
            raise _no_block(address)
        header = words[place]
        if not header & _USED or words[place + 1] == NO_OWNER:
            raise _no_block(address)
        size = header >> 2
        self._used -= size
        words[place + 1] = NO_OWNER  # so that a second free is noticed, even after merging
        if size < _QUICK_SIZES and self._allocator.defers_merging:
            self._quick[size].append(start)
            self._deferred += size
            if self._deferred > self._deferred_freely and (
                self._deferred * _DEFERRED_SHARE > self._used
            ):
                self._merge_some()
        else:
            self._release(start, size)

    def resize(self, address: int, size: int) -> bool:
        """Change a block's size in place: shrink it, or grow it into the free space behind it.

        Return ``False``, with the block unchanged, if there is not enough free space behind it.
        """
        if size < 0:
            raise InvalidInput(f"a block cannot have {size} bytes; a size is 0 or more")
        start, have = self._block(address)
        need = (size + 23) >> 4
        if need > have and not self._grow(start, have, need):
            return False
        _, have = self._block(address)
        if need < have:
            self._set_size(start, need)
            self._mark_before(start + need, free=False)
            self._used -= have - need
            self._release(start + need, have - need, fresh=True)
        return True

    def write(self, address: int, data: bytes | memoryview) -> None:
        """Write bytes at an address."""
        self._bytes[address : address + len(data)] = data

    def fill(self, address: int, data: bytes, owner: int) -> None:
        """Write bytes into a block and set its owner, which ``compact`` reports."""
        self._bytes[address : address + len(data)] = data
        self._words[(address >> 2) - 1] = owner

    def read(self, address: int, size: int) -> bytes:
        """Return a copy of bytes at an address."""
        return self._arena[address : address + size]

    def room(self, address: int) -> int:
        """Return how many bytes the block at an address can hold."""
        _, size = self._block(address)
        return size * GRANULE - HEADER

    @staticmethod
    def block_size(size: int) -> int:
        """Return how many bytes a block with ``size`` bytes of contents takes."""
        return (size + 23) >> 4 << 4

    def available(self) -> int:
        """Return how many bytes are not allocated."""
        return (self._limit - self._used) * GRANULE

    def allocated(self) -> int:
        """Return how many bytes the allocated blocks take."""
        return self._used * GRANULE

    def high_water(self) -> int:
        """Return the most bytes of the arena in use since the last compaction."""
        return self._top * GRANULE

    def largest_free(self) -> int:
        """Return the size of the largest free block, counting merged blocks only."""
        return max(self._limit - self._top, self._allocator.largest()) * GRANULE

    def fragmentation(self) -> float:
        """Return 1 − largest free block / all free bytes; 0 when nothing is free."""
        free = self.available()
        return 1.0 - self.largest_free() / free if free else 0.0

    def free_segments(self) -> list[Segment]:
        """Return the free segments in address order."""
        return self.snapshot().free

    def snapshot(self) -> HeapSnapshot:
        """Return a map of the heap, with adjacent free blocks as one segment."""
        taken: list[tuple[int, int]] = []
        free: list[tuple[int, int]] = []
        for start, size, is_free in self._walk():
            if is_free and free and free[-1][0] + free[-1][1] == start:
                free[-1] = (free[-1][0], free[-1][1] + size)
            else:
                (free if is_free else taken).append((start, size))
        return HeapSnapshot(_in_bytes(taken), _in_bytes(free))

    def compact(self, moved: Callable[[int, int], None]) -> int:
        """Slide all blocks together; call ``moved(owner, address)`` for each one that moved.

        Return how many bytes were moved. Afterwards all free bytes are contiguous.
        """
        top = moved_granules = 0
        for start, size, is_free in list(self._walk()):
            if is_free:
                continue
            if start != top:
                self._arena.move(top * GRANULE, start * GRANULE, size * GRANULE)
                moved_granules += size
                moved(self._words[(top << 2) + 1], top * GRANULE + HEADER)
            self._words[top << 2] = size << 2 | _USED
            top += size
        self._start_over(top)
        self._give_back()
        return moved_granules * GRANULE

    def adopt(self, blocks: Iterable[memoryview], top: int, holes: Iterable[int]) -> None:
        """Replace the contents by blocks laid out from the bottom, then free those at ``holes``.

        The blocks must have been laid out as ``compact`` does it.
        """
        place = 0
        for part in blocks:
            self._bytes[place : place + len(part)] = part
            place += len(part)
        self._start_over(top)
        for address in holes:
            self.deallocate(address)

    def merge_deferred(self) -> None:
        """Merge every freed block with its free neighbours now."""
        for size, waiting in enumerate(self._quick):
            while waiting:
                self._merge_one(waiting.pop(), size)

    def check(self) -> None:
        """Verify every invariant of the heap. Meant for tests: it reads all headers."""
        used = deferred = 0
        before_free = False
        largest = self._limit - self._top
        for start, size, is_free in self._walk():
            if start == self._top:
                break
            header, owner = self._words[start << 2], self._words[(start << 2) + 1]
            linked = not header & _USED
            assert size > 0, f"block {start} is empty"
            assert bool(header & _BEFORE_IS_FREE) == before_free, f"block {start}: neighbour flag"
            assert not (linked and before_free), f"block {start}: two free neighbours not merged"
            if linked:
                assert self._words[((start + size) << 2) - 1] == size, f"block {start}: footer"
                largest = max(largest, size)
            deferred += size if not linked and owner == NO_OWNER else 0
            used += 0 if is_free else size
            before_free = linked
        assert not before_free, "the free stretch before the top was not merged into it"
        assert (used, deferred) == (self._used, self._deferred)
        assert largest * GRANULE == self.largest_free()
        for size, waiting in enumerate(self._quick):
            assert all(self._words[start << 2] >> 2 == size for start in waiting)

    def close(self) -> None:
        """Return the memory to the operating system."""
        self._words.release()
        self._bytes.release()
        self._arena.close()

    def _carve(self, need: int) -> int:
        if need > self._limit - self._used:
            return NOWHERE
        start = self._take(self._allocator.find(need), need)
        if start == NOWHERE and self._deferred:
            self.merge_deferred()
            start = self._take(self._allocator.find(need), need)
        if start == NOWHERE:
            start = self._take(self._allocator.search(need), need)
        return start

    def _take(self, start: int, need: int) -> int:
        """Take a found block, or else one from the top; the remainder stays free."""
        if start == NOWHERE:
            return self._from_top(need)
        have = self._words[start << 2] >> 2
        self._allocator.remove(start, have)
        if have > need:
            self._link(start + need, have - need)
        else:
            self._mark_before(start + have, free=False)
        self._words[start << 2] = need << 2 | _USED  # a free block's neighbour is never free
        return start

    def _from_top(self, need: int) -> int:
        start = self._top
        if start + need > self._limit:
            return NOWHERE
        self._words[start << 2] = need << 2 | _USED
        self._top = start + need
        return start

    def _grow(self, start: int, have: int, need: int) -> bool:
        """Take the missing bytes from the free space behind a block."""
        behind, missing = start + have, need - have
        if behind == self._top:
            if self._from_top(missing) == NOWHERE:
                return False
        else:
            header = self._words[behind << 2]
            free = header >> 2
            if header & _USED or free < missing:
                return False
            self._allocator.remove(behind, free)
            if free > missing:
                self._link(behind + missing, free - missing)
            else:
                self._mark_before(behind + free, free=False)
        self._set_size(start, need)
        self._used += missing
        return True

    def _release(self, start: int, size: int, *, fresh: bool = False) -> None:
        """Merge a block with its free neighbours and hand it to the allocator, or to the top.

        ``fresh``: it was just cut off a used block, so the block before it is not free.
        """
        words = self._words
        if not fresh and words[start << 2] & _BEFORE_IS_FREE:
            before = words[(start << 2) - 1]
            start -= before
            size += before
            self._allocator.remove(start, before)
        behind = start + size
        if behind < self._top:
            header = words[behind << 2]
            if not header & _USED:
                self._allocator.remove(behind, header >> 2)
                size += header >> 2
                behind = start + size
        if behind == self._top:
            self._top = start
        else:
            self._link(start, size)

    def _link(self, start: int, size: int) -> None:
        """Make a free block of a stretch whose neighbours are used."""
        self._words[start << 2] = size << 2
        self._words[((start + size) << 2) - 1] = size
        self._mark_before(start + size, free=True)
        self._allocator.add(start, size)

    def _mark_before(self, start: int, *, free: bool) -> None:
        """Record in a block's header whether the block before it is free."""
        if start < self._top:
            if free:
                self._words[start << 2] |= _BEFORE_IS_FREE
            else:
                self._words[start << 2] &= ~_BEFORE_IS_FREE

    def _set_size(self, start: int, size: int) -> None:
        self._words[start << 2] = size << 2 | (self._words[start << 2] & 3)

    def _merge_some(self) -> None:
        """Merge one waiting block for each new one."""
        for _ in range(4):
            waiting = self._quick[self._drain_class]
            if waiting:
                self._merge_one(waiting.pop(), self._drain_class)
                return
            self._drain_class = (self._drain_class + 1) % _QUICK_SIZES

    def _merge_one(self, start: int, size: int) -> None:
        self._deferred -= size
        self._release(start, size)

    def _block(self, address: int) -> tuple[int, int]:
        """Return start and size of the allocated block at an address."""
        place = (address - 8) >> 2
        if address & 15 != 8 or not 0 <= place < self._top << 2:
            raise _no_block(address)
        header = self._words[place]
        if not header & _USED or self._words[place + 1] == NO_OWNER:
            raise _no_block(address)
        return place >> 2, header >> 2

    def _walk(self) -> Iterator[tuple[int, int, bool]]:
        """Yield (start, size, is free) of every block in address order, the top last."""
        start, words = 0, self._words
        while start < self._top:
            header = words[start << 2]
            size = header >> 2
            yield start, size, not header & _USED or words[(start << 2) + 1] == NO_OWNER
            start += size
        if start < self._limit:
            yield start, self._limit - start, True

    def _give_back(self) -> None:
        """Return the pages above the top to the operating system."""
        page = mmap.PAGESIZE
        start = -(-self._top * GRANULE // page) * page
        if start < self.capacity and hasattr(self._arena, "madvise"):
            self._arena.madvise(mmap.MADV_DONTNEED, start, self.capacity - start)


def _reserve(capacity: int) -> mmap.mmap:
    try:
        if hasattr(mmap, "MAP_PRIVATE"):
            return mmap.mmap(-1, capacity, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        return mmap.mmap(-1, capacity)
    except (OSError, ValueError) as error:
        raise OutOfSpace(
            f"the system does not grant {capacity} bytes of address space ({error}); "
            "choose a smaller capacity"
        ) from error


def _in_bytes(blocks: list[tuple[int, int]]) -> list[Segment]:
    return [Segment(start * GRANULE, size * GRANULE) for start, size in blocks]


def _unusable(size: int, owner: int) -> InvalidInput:
    if size < 0:
        return InvalidInput(f"cannot allocate {size} bytes; a size is 0 or more")
    return InvalidInput(f"an owner is a number from 0 to {NO_OWNER - 1}, got {owner}")


def _no_block(address: int) -> InvalidInput:
    return InvalidInput(f"no allocated block at address {address}; was it freed before?")
