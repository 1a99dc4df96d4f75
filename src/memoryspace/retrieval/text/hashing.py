"""Tokens as 64-bit hashes: one by one, or all spans of a batch with a few vector operations.

Two tokens with the same hash count as the same word. This is accepted: with a million distinct
words the odds are one in thirty million.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]
Numbers = NDArray[np.int64]
Codes = NDArray[np.unsignedinteger[Any]]

_WRAP = (1 << 64) - 1
_BASE = 0x9E6C63D0876A3F4B  # odd, so invertible; 3 modulo 4, so its powers repeat late
_INVERSE = pow(_BASE, -1, 1 << 64)
_MIX = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
_KEPT_POWERS = 1 << 17  # code points; for a longer batch the powers are computed each time


def token_hash(token: str) -> int:
    """Return the hash of one token; ``hash_spans`` computes the same for many at once."""
    value, power = 0, 1
    for char in token:
        value = (value + ord(char) * power) & _WRAP
        power = (power * _BASE) & _WRAP
    for multiplier, shift in zip(_MIX, (30, 27), strict=True):
        value = ((value ^ (value >> shift)) * multiplier) & _WRAP
    return value ^ (value >> 31)


def code_points(text: str) -> Codes:
    """Return the code points of a text, as bytes if it is ASCII."""
    if text.isascii():
        return np.frombuffer(text.encode("ascii"), np.uint8)
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.dtype("<u4"))


def text_in(codes: Codes) -> str:
    """Return the text that code points spell."""
    if codes.itemsize == 1:
        return codes.tobytes().decode("ascii")
    return codes.astype("<u4", copy=False).tobytes().decode("utf-32-le", "surrogatepass")


def hash_spans(codes: Codes, begins: Numbers, ends: Numbers) -> Hashes:
    """Hash every span with one running sum over the batch.

    The sum of code * base**position up to the end, less that up to the begin, divided by
    base**begin, is the polynomial of the span alone, at any position (all modulo 2**64).
    """
    running = np.zeros(len(codes) + 1, np.uint64)
    running[1:] = codes
    running[1:] *= _powers(_BASE, len(codes))
    np.cumsum(running, out=running)
    value = running.take(ends)
    value -= running.take(begins)
    value *= _powers(_INVERSE, len(codes) + 1).take(begins)
    for multiplier, shift in zip(_MIX, (30, 27), strict=True):
        value ^= value >> np.uint64(shift)
        value *= np.uint64(multiplier)
    value ^= value >> np.uint64(31)
    return value


def hash_all(tokens: Sequence[str]) -> Hashes:
    """Return the hashes of a list of tokens."""
    ends = np.cumsum([len(token) for token in tokens], dtype=np.int64)
    begins = np.zeros_like(ends)
    begins[1:] = ends[:-1]
    return hash_spans(code_points("".join(tokens)), begins, ends)


def _powers(base: int, count: int) -> Hashes:
    if count > _KEPT_POWERS:
        return _made_powers(base, count)
    return _kept_powers(base)[:count]


@cache
def _kept_powers(base: int) -> Hashes:
    return _made_powers(base, _KEPT_POWERS)


def _made_powers(base: int, count: int) -> Hashes:
    powers = np.full(count, base, np.uint64)
    powers[0] = 1
    return np.multiply.accumulate(powers)
