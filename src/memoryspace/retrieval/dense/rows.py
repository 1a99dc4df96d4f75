"""Where vectors stand: chunks of slots, the way from a key to its slot, and which slots are free.

A chunk is one stretch of memory of a fixed size, anonymous or mapped from a file (then a write
goes to a private copy). Growing takes a new chunk and moves no vector; only the few bytes a slot
has beside its vector are copied now and then. A slot that was freed is the next to be given out.
"""

from __future__ import annotations

import mmap
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

CHUNK = 1 << 15  # slots: memory that is asked for at once, though not taken
MAX_KEY = (1 << 28) - 1  # four bytes are reserved for each key up to the greatest

_LEAST = 1 << 10  # slots or keys
_AT_ONCE = 256  # vectors
_ALIGNMENT = 1 << 16  # what any system can map a file at
_COARSE_WORDS = 3  # at least 192 bits: fewer lose neighbours, and so many still fit into a byte

Vectors = NDArray[np.float32]
Words = NDArray[np.uint64]
Slots = NDArray[np.int64]
Keys = NDArray[np.int64]


class Shape(NamedTuple):
    """How many dimensions, and how many words of sign bits come first and how many later."""

    dimensions: int
    coarse: int
    fine: int

    @classmethod
    def of(cls, dimensions: int) -> Shape:
        """Half of the bits come first, but no fewer than 192."""
        words = -(-dimensions // 64)
        coarse = min(words, max(_COARSE_WORDS, -(-words // 2)))
        return cls(dimensions, coarse, words - coarse)

    @property
    def slot_bytes(self) -> int:
        """Bytes that a slot takes of its chunk."""
        return 4 * self.dimensions + 8 * (self.coarse + self.fine)

    @property
    def chunk_bytes(self) -> int:
        """Bytes of a chunk, in memory and in a file."""
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
        """Return a chunk of zeros that takes no memory until it is written to."""
        return cls(_anonymous(shape.chunk_bytes), shape)


class Part(NamedTuple):
    """Some slots that stand in one chunk: the chunk, the places in it, and which of the slots."""

    chunk: Chunk
    places: Slots
    which: slice


class Rows:
    """Slots by key. ``used`` of them were ever given out; those in ``free`` hold nothing now.

    ``hidden`` is 1 for a slot where nothing is to be found: it is free, or its vector is zero.
    """

    def __init__(self, dimensions: int) -> None:
        self.shape = Shape.of(dimensions)
        self.chunks: list[Chunk] = []
        self.used = 0
        self.free: list[int] = []
        self.zeros = 0  # vectors without a direction
        self.keys: NDArray[np.int32] = _column(_LEAST, np.int32)
        self.ages: NDArray[np.int64] = _column(_LEAST, np.int64)
        self.hidden: NDArray[np.uint8] = _column(_LEAST, np.uint8)
        self._age = 0  # of the next
        self._places: NDArray[np.int32] = _column(_LEAST, np.int32)  # key → slot + 1, or 0
        self._table = np.empty((_AT_ONCE, dimensions), np.float32)

    def __len__(self) -> int:
        return self.used - len(self.free)

    @property
    def nbytes(self) -> int:
        """Bytes of the slots ever used and of what leads to them."""
        columns = (self.keys, self.ages, self.hidden, self._places)
        return self.used * self.shape.slot_bytes + sum(each.nbytes for each in columns)

    @property
    def has_hidden(self) -> bool:
        """Whether any slot in use must not be found."""
        return self.zeros > 0 or len(self.free) > 0

    def slot(self, key: int) -> int:
        """Return the slot of a key, or -1."""
        return int(self._places[key]) - 1 if 0 <= key < len(self._places) else -1

    def slots(self, keys: Keys) -> Slots:
        """Return the slot of each key, -1 for those that are not here."""
        inside = (keys >= 0) & (keys < len(self._places))
        places = self._places[keys if inside.all() else np.where(inside, keys, 0)]
        return np.where(inside, places, 0).astype(np.int64) - 1

    def put(self, key: int, vector: Vectors, words: Words) -> None:
        """Store one new vector and its bits."""
        slot = self._allot(key)
        chunk, place = self.chunks[slot // CHUNK], slot % CHUNK
        coarse = self.shape.coarse
        chunk.vectors[place] = vector
        chunk.coarse[:, place] = words[:coarse]
        chunk.fine[place] = words[coarse:]
        hidden = not vector.any()
        self.hidden[slot] = hidden
        self.zeros += hidden

    def put_many(self, keys: list[int], vectors: Vectors, words: Words) -> None:
        """Store new vectors and their bits, the older first."""
        slots = np.array([self._allot(key) for key in keys], np.int64)
        order = np.argsort(slots)
        coarse = self.shape.coarse
        for chunk, places, which in self.parts(slots[order]):
            rows = order[which]
            chunk.vectors[places] = vectors[rows]
            chunk.coarse[:, places] = words[rows, :coarse].T
            chunk.fine[places] = words[rows, coarse:]
        self.hidden[slots] = hidden = ~vectors.any(axis=1)
        self.zeros += int(hidden.sum())

    def give_up(self, key: int) -> bool:
        """Free the slot of a key; tell whether there was one."""
        slot = self.slot(key)
        if slot < 0:
            return False
        self.zeros -= int(self.hidden[slot])
        self.hidden[slot] = 1
        self._places[key] = 0
        self.free.append(slot)
        return True

    def parts(self, slots: Slots) -> Iterator[Part]:
        """Split rising slots by the chunk they stand in."""
        borders = slots.searchsorted(np.arange(len(self.chunks) + 1) * CHUNK).tolist()
        for number, chunk in enumerate(self.chunks):
            begin, end = borders[number : number + 2]
            if begin < end:
                yield Part(chunk, slots[begin:end] - number * CHUNK, slice(begin, end))

    def stretches(self) -> Iterator[tuple[Chunk, slice]]:
        """Yield each chunk and the slots of it that were ever used."""
        for number, chunk in enumerate(self.chunks):
            yield chunk, slice(number * CHUNK, min(self.used, (number + 1) * CHUNK))

    def vectors(self, slots: Slots) -> Vectors:
        """Return the vectors of rising slots."""
        found = np.empty((len(slots), self.shape.dimensions), np.float32)
        for chunk, places, which in self.parts(slots):
            np.take(chunk.vectors, places, axis=0, out=found[which], mode="clip")
        return found

    def products(self, slots: Slots, query: Vectors) -> Vectors:
        """Return the products of the vectors of rising slots with a query.

        They pass through a small table that stays in the cache and is kept for the next time.
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

    def living(self) -> Slots:
        """Return all slots in use, the oldest vector first."""
        taken = np.ones(self.used, bool)
        taken[self.free] = False
        slots = np.flatnonzero(taken)
        return slots[np.argsort(self.ages[slots])]

    def adopt(self, chunks: list[Chunk], keys: Keys, hidden: NDArray[np.uint8]) -> None:
        """Take over chunks that hold a vector for each key without a gap, the oldest first."""
        self.chunks, self.used, self._age = chunks, len(keys), len(keys)
        self.zeros = int(hidden.sum())
        self._make_room(int(keys.max(initial=0)))
        self.keys[: self.used] = keys
        self.ages[: self.used] = np.arange(self.used)
        self.hidden[: self.used] = hidden
        self._places[keys] = np.arange(1, self.used + 1)

    def _allot(self, key: int) -> int:
        """Give a key a slot and an age. Every way into the rows leads through here."""
        if self.free:
            slot = self.free.pop()
        else:
            slot = self.used
            if slot == len(self.chunks) * CHUNK:
                self.chunks.append(Chunk.empty(self.shape))
            self.used += 1
        if key >= len(self._places) or slot >= len(self.keys):
            self._make_room(key)
        self.keys[slot] = key
        self.ages[slot] = self._age
        self._places[key] = slot + 1
        self._age += 1
        return slot

    def _make_room(self, key: int) -> None:
        self._places = _widened(self._places, key + 1)
        self.keys = _widened(self.keys, self.used)
        self.ages = _widened(self.ages, self.used)
        self.hidden = _widened(self.hidden, self.used)


def _widened(column: NDArray[Any], room: int) -> NDArray[Any]:
    if room <= len(column):
        return column
    wider = _column(1 << (room - 1).bit_length(), column.dtype)
    wider[: len(column)] = column
    return wider


def _column(room: int, dtype: DTypeLike) -> NDArray[Any]:
    return np.frombuffer(_anonymous(room * np.dtype(dtype).itemsize), dtype)


def _anonymous(size: int) -> mmap.mmap:
    """Return memory that is zero and is not taken until it is used, page by page."""
    if sys.platform == "win32":
        return mmap.mmap(-1, size)
    # A forked process writes to its own copy.
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
