"""Storage of vectors: chunks of slots, the mapping from keys to slots, and the free slots.

A chunk is a block of memory of a fixed size, anonymous or mapped from a file (then a write goes to
a private copy). Growing adds a chunk and moves no vector; only the few bytes of a slot's other
columns are copied now and then. The slot that was freed last is reused first.
"""

from __future__ import annotations

import mmap
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

CHUNK = 1 << 15  # slots for which memory is reserved at once
MAX_KEY = (1 << 28) - 1  # four bytes are reserved for each key up to the greatest

_LEAST = 1 << 10  # slots or keys
_AT_ONCE = 256  # vectors multiplied in one step
_ALIGNMENT = 1 << 16  # a file offset that any system can map
_COARSE_WORDS = 3  # at least 192 bits: fewer lose neighbours; a count of 192 still fits in a byte

Vectors = NDArray[np.float32]
Words = NDArray[np.uint64]
Slots = NDArray[np.int64]
Keys = NDArray[np.int64]


class Shape(NamedTuple):
    """The number of dimensions, and of the words of sign bits in the coarse and the fine part."""

    dimensions: int
    coarse: int
    fine: int

    @classmethod
    def of(cls, dimensions: int) -> Shape:
        """Return the shape for some dimensions; half of the bits, at least 192, are coarse."""
        words = -(-dimensions // 64)
        coarse = min(words, max(_COARSE_WORDS, -(-words // 2)))
        return cls(dimensions, coarse, words - coarse)

    @property
    def slot_bytes(self) -> int:
        """The bytes of a slot in its chunk."""
        return 4 * self.dimensions + 8 * (self.coarse + self.fine)

    @property
    def chunk_bytes(self) -> int:
        """The bytes of a chunk, in memory and in a file."""
        return -(-CHUNK * self.slot_bytes // _ALIGNMENT) * _ALIGNMENT


class Chunk:
    """The vectors and bits of ``CHUNK`` slots as views into one buffer."""

    def __init__(self, buffer: mmap.mmap, shape: Shape) -> None:
        dimensions, coarse, fine = shape
        self.vectors: Vectors = np.frombuffer(buffer, np.float32, CHUNK * dimensions)
        self.vectors = self.vectors.reshape(CHUNK, dimensions)
        rest = np.frombuffer(buffer, np.uint64, CHUNK * (coarse + fine), self.vectors.nbytes)
        self.coarse: Words = rest[: CHUNK * coarse].reshape(coarse, CHUNK)
        self.fine: Words = rest[CHUNK * coarse :].reshape(CHUNK, fine)

    @classmethod
    def empty(cls, shape: Shape) -> Chunk:
        """Return a chunk of zeros that uses no memory until it is written to."""
        return cls(_anonymous(shape.chunk_bytes), shape)


class ChunkSlots(NamedTuple):
    """Slots in one chunk: the chunk, their places in it, and their slice of all slots."""

    chunk: Chunk
    places: Slots
    which: slice


class Rows:
    """Slots by key. ``used`` slots were ever allocated; those in ``free`` are empty now.

    ``hidden`` is 1 for a slot that no search returns: it is free, or its vector is zero.
    """

    def __init__(self, dimensions: int) -> None:
        self.shape = Shape.of(dimensions)
        self.chunks: list[Chunk] = []
        self.used = 0
        self.free: list[int] = []
        self.zeros = 0  # the number of zero vectors
        self.keys: NDArray[np.int32] = _column(_LEAST, np.int32)
        self.ages: NDArray[np.int64] = _column(_LEAST, np.int64)
        self.hidden: NDArray[np.uint8] = _column(_LEAST, np.uint8)
        self._age = 0  # of the next vector
        self._places: NDArray[np.int32] = _column(_LEAST, np.int32)  # key → slot + 1, or 0
        self._table = np.empty((_AT_ONCE, dimensions), np.float32)

    def __len__(self) -> int:
        return self.used - len(self.free)

    @property
    def nbytes(self) -> int:
        """The bytes of all slots ever used and of the columns and the key table."""
        columns = (self.keys, self.ages, self.hidden, self._places)
        return self.used * self.shape.slot_bytes + sum(each.nbytes for each in columns)

    @property
    def has_hidden(self) -> bool:
        """Whether any allocated slot is hidden."""
        return self.zeros > 0 or len(self.free) > 0

    def slot(self, key: int) -> int:
        """Return the slot of a key, or -1."""
        return int(self._places[key]) - 1 if 0 <= key < len(self._places) else -1

    def slots(self, keys: Keys) -> Slots:
        """Return the slot of each key, -1 for keys without one."""
        inside = (keys >= 0) & (keys < len(self._places))
        places = self._places[keys if inside.all() else np.where(inside, keys, 0)]
        return np.where(inside, places, 0).astype(np.int64) - 1

    def put(self, key: int, vector: Vectors, words: Words) -> None:
        """Store a vector and its bits under a new key."""
        slot = self._allocate(key)
        chunk, place = self.chunks[slot // CHUNK], slot % CHUNK
        coarse = self.shape.coarse
        chunk.vectors[place] = vector
        chunk.coarse[:, place] = words[:coarse]
        chunk.fine[place] = words[coarse:]
        hidden = not vector.any()
        self.hidden[slot] = hidden
        self.zeros += hidden

    def put_many(self, keys: list[int], vectors: Vectors, words: Words) -> None:
        """Store vectors and their bits under new keys, the oldest first."""
        slots = np.array([self._allocate(key) for key in keys], np.int64)
        order = np.argsort(slots)
        coarse = self.shape.coarse
        for chunk, places, which in self.parts(slots[order]):
            rows = order[which]
            chunk.vectors[places] = vectors[rows]
            chunk.coarse[:, places] = words[rows, :coarse].T
            chunk.fine[places] = words[rows, coarse:]
        self.hidden[slots] = hidden = ~vectors.any(axis=1)
        self.zeros += int(hidden.sum())

    def release(self, key: int) -> bool:
        """Free the slot of a key; return whether there was one."""
        slot = self.slot(key)
        if slot < 0:
            return False
        self.zeros -= int(self.hidden[slot])
        self.hidden[slot] = 1
        self._places[key] = 0
        self.free.append(slot)
        return True

    def parts(self, slots: Slots) -> Iterator[ChunkSlots]:
        """Split rising slots by chunk."""
        borders = slots.searchsorted(np.arange(len(self.chunks) + 1) * CHUNK).tolist()
        for number, chunk in enumerate(self.chunks):
            begin, end = borders[number : number + 2]
            if begin < end:
                yield ChunkSlots(chunk, slots[begin:end] - number * CHUNK, slice(begin, end))

    def stretches(self) -> Iterator[tuple[Chunk, slice]]:
        """Yield each chunk and the range of its slots that were ever used."""
        for number, chunk in enumerate(self.chunks):
            yield chunk, slice(number * CHUNK, min(self.used, (number + 1) * CHUNK))

    def vectors(self, slots: Slots) -> Vectors:
        """Return the vectors of rising slots."""
        found = np.empty((len(slots), self.shape.dimensions), np.float32)
        for chunk, places, which in self.parts(slots):
            np.take(chunk.vectors, places, axis=0, out=found[which], mode="clip")
        return found

    def products(self, slots: Slots, query: Vectors) -> Vectors:
        """Return the inner products of the vectors of rising slots with a query.

        They are copied through a small, reused table that stays in the processor's cache.
        """
        found = np.empty(len(slots), np.float32)
        for chunk, places, which in self.parts(slots):
            for begin in range(0, len(places), _AT_ONCE):
                some = places[begin : begin + _AT_ONCE]
                table = self._table[: len(some)]
                np.take(chunk.vectors, some, axis=0, out=table, mode="clip")
                start = which.start + begin
                np.dot(table, query, out=found[start : start + len(some)])
        return found

    def occupied(self) -> Slots:
        """Return all slots in use, the oldest vector first."""
        taken = np.ones(self.used, bool)
        taken[self.free] = False
        slots = np.flatnonzero(taken)
        return slots[np.argsort(self.ages[slots])]

    def adopt(self, chunks: list[Chunk], keys: Keys, hidden: NDArray[np.uint8]) -> None:
        """Use chunks that hold a vector for each key without gaps, the oldest first."""
        self.chunks, self.used, self._age = chunks, len(keys), len(keys)
        self.zeros = int(hidden.sum())
        self._grow(int(keys.max(initial=0)))
        self.keys[: self.used] = keys
        self.ages[: self.used] = np.arange(self.used)
        self.hidden[: self.used] = hidden
        self._places[keys] = np.arange(1, self.used + 1)

    def _allocate(self, key: int) -> int:
        """Allocate a slot and an age for a key. Every insertion goes through here."""
        if self.free:
            slot = self.free.pop()
        else:
            slot = self.used
            if slot == len(self.chunks) * CHUNK:
                self.chunks.append(Chunk.empty(self.shape))
            self.used += 1
        if key >= len(self._places) or slot >= len(self.keys):
            self._grow(key)
        self.keys[slot] = key
        self.ages[slot] = self._age
        self._places[key] = slot + 1
        self._age += 1
        return slot

    def _grow(self, key: int) -> None:
        self._places = _widened(self._places, key + 1)
        self.keys = _widened(self.keys, self.used)
        self.ages = _widened(self.ages, self.used)
        self.hidden = _widened(self.hidden, self.used)


def _widened(column: NDArray[Any], size: int) -> NDArray[Any]:
    if size <= len(column):
        return column
    wider = _column(1 << (size - 1).bit_length(), column.dtype)
    wider[: len(column)] = column
    return wider


def _column(size: int, dtype: DTypeLike) -> NDArray[Any]:
    return np.frombuffer(_anonymous(size * np.dtype(dtype).itemsize), dtype)


def _anonymous(size: int) -> mmap.mmap:
    """Return zeroed memory that is allocated page by page, on first use."""
    if sys.platform == "win32":
        return mmap.mmap(-1, size)
    # A forked process writes to its own copy.
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
