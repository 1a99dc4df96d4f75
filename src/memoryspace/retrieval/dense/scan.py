"""Approximate nearest neighbours by sign bits: a scan of a thirtieth of the vectors' bytes.

The sign of each number is one bit; the more bits two vectors share, the nearer they are, roughly.
The coarse part of the bits is compared for every slot, the fine part only for the nearest by the
coarse one. The result is a set of candidates, whose vectors must then be compared.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .rows import Rows, Slots, Vectors, Words

_WIDER = 4  # the coarse bits select four times as many as wanted
_BLOCK = 1 << 13  # slots compared at once, so that the results stay in the cache
_SAMPLE = 1 << 12  # distances sampled to guess the cut
_BYTE_WORDS = 3  # up to 192 bits, a distance and "never" fit in a byte

Distances: TypeAlias = NDArray[np.unsignedinteger[Any]]


def pack(vectors: Vectors) -> Words:
    """Return the sign bits of each vector as words of 64."""
    bits = np.packbits(vectors > 0, axis=1)
    if gap := -bits.shape[1] % 8:
        bits = np.pad(bits, ((0, 0), (0, gap)))
    return bits.view(np.uint64)


class Scanner:
    """Scans one set of rows. It reuses its buffers, so only one scan may run at a time."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        coarse = rows.shape.coarse
        self._type = np.uint8 if coarse <= _BYTE_WORDS else np.uint16
        self._never = int(np.iinfo(self._type).max)
        self._words = np.empty((coarse, _BLOCK), np.uint64)
        self._counts = np.empty((coarse, _BLOCK), np.uint8)
        self._distances: Distances = np.empty(0, self._type)

    def nearest(self, words: Words, wanted: int, among: Slots | None) -> Slots:
        """Return about ``wanted`` of the slots nearest to a vector by its bits, rising.

        Slots that are hidden, or not in ``among``, are never returned.
        """
        distances = self._coarse(words[: self._rows.shape.coarse], among)
        if not self._rows.shape.fine:
            return _nearest(distances, wanted, self._never)
        slots = _nearest(distances, _WIDER * wanted, self._never)
        total = self._fine(words[self._rows.shape.coarse :], slots) + distances[slots]
        return slots[_nearest(total, wanted, int(np.iinfo(np.uint16).max))]

    def _coarse(self, words: Words, among: Slots | None) -> Distances:
        rows = self._rows
        distances = self._buffer(rows.used)
        column = words[:, np.newaxis]
        for chunk, span in rows.stretches():
            for begin in range(span.start, span.stop, _BLOCK):
                end = min(begin + _BLOCK, span.stop)
                bits = chunk.coarse[:, begin - span.start : end - span.start]
                differing, counts = self._words[:, : end - begin], self._counts[:, : end - begin]
                np.bitwise_xor(bits, column, out=differing)
                np.bitwise_count(differing, out=counts)
                np.add.reduce(counts, axis=0, dtype=self._type, out=distances[begin:end])
        if among is not None:
            return self._only(distances, among)
        if rows.has_hidden:
            distances[rows.hidden[: rows.used] > 0] = self._never
        return distances

    def _only(self, distances: Distances, among: Slots) -> Distances:
        kept: Distances = np.full(len(distances), self._never, self._type)
        kept[among] = distances[among]
        return kept

    def _fine(self, words: Words, slots: Slots) -> NDArray[np.uint16]:
        found = np.empty(len(slots), np.uint16)
        for chunk, places, which in self._rows.parts(slots):
            bits = np.take(chunk.fine, places, axis=0, mode="clip")
            np.bitwise_xor(bits, words, out=bits)
            np.add.reduce(np.bitwise_count(bits).T, axis=0, dtype=np.uint16, out=found[which])
        return found

    def _buffer(self, size: int) -> Distances:
        if len(self._distances) < size:
            self._distances = np.empty(size + size // 4, self._type)
        return self._distances[:size]


def _nearest(distances: Distances, wanted: int, never: int) -> Slots:
    """Return where the ``wanted`` least distances are, rising; up to twice as many on ties."""
    cut = _cut(distances, wanted, never)
    found = np.flatnonzero(distances <= cut)
    if len(found) <= 2 * wanted:
        return found
    nearer = np.flatnonzero(distances < cut)
    tied = np.flatnonzero(distances == cut)
    return np.sort(np.concatenate([nearer, tied[len(nearer) - wanted :]]))


def _cut(distances: Distances, wanted: int, never: int) -> int:
    """Return the least distance within which there are ``wanted`` slots, if there is one."""
    stride = len(distances) // _SAMPLE + 1
    sample = distances[::stride]
    rank = min(wanted // stride, len(sample) - 1)
    guess, step = int(np.partition(sample, rank)[rank]), 1
    low, high = 0, never - 1
    while low < high:  # try the guess, then growing steps around it, then bisect
        middle = guess if low <= guess < high else (low + high) // 2
        if np.count_nonzero(distances <= middle) >= wanted:
            high, guess = middle, middle - step
        else:
            low, guess = middle + 1, middle + step
        step *= 2
    return low
