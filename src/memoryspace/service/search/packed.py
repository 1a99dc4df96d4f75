"""The stored form of a vector: one byte per number, and a digest that identifies its source.

    form (1) · digest (8) · scale (4) · numbers (one signed byte each)

The digest covers the space, the text and the rest. Bytes that are damaged, truncated, made from
another text or by another embedder do not unpack, and the text is embedded again. The digest guards
against mistakes, not against an attacker who can write to the store.

Each number is rounded to 1/127 of the largest. This takes a quarter of the bytes of float32, moves
the cosine of two vectors of 384 numbers by about 0.001, and does not measurably change which
memories are found (see docs/recall.md).
"""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]

_FORM = b"\x01"
_DIGEST = 8
_HEAD = len(_FORM) + _DIGEST
_SCALE = np.dtype("<f4")
_MOST = 127


def pack(vector: Vector, space: str, text: str) -> bytes:
    """Return the bytes of a text's vector in the space of an embedder."""
    scales, numbers = _split(vector[np.newaxis])
    rest: bytes = scales.tobytes() + numbers.tobytes()
    return _FORM + _digest(space, text, rest) + rest


def rounded(vectors: Vector) -> Vector:
    """Return rows as ``unpack`` would return them, so that new and stored vectors rank alike."""
    scales, numbers = _split(vectors)
    return numbers.astype(np.float32) * scales


def unpack(kept: bytes, space: str, text: str, dimensions: int) -> Vector | None:
    """Return the vector in bytes from a store, or ``None`` if they do not match the text."""
    rest = kept[_HEAD:]
    if len(rest) != _SCALE.itemsize + dimensions or kept[: len(_FORM)] != _FORM:
        return None
    if kept[len(_FORM) : _HEAD] != _digest(space, text, rest):
        return None
    scale = np.frombuffer(rest, _SCALE, 1)
    vector = np.frombuffer(rest, np.int8, offset=_SCALE.itemsize).astype(np.float32) * scale
    return vector if np.isfinite(vector).all() else None


def _split(vectors: Vector) -> tuple[Vector, NDArray[np.int8]]:
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0.0)
    scales = np.where(largest > 0, largest / _MOST, 1.0).astype(_SCALE)
    scales[scales == 0] = 1.0  # the largest number was too small to divide
    return scales, np.clip(np.rint(vectors / scales), -_MOST, _MOST).astype(np.int8)


def _digest(space: str, text: str, rest: bytes) -> bytes:
    digest = blake2b(digest_size=_DIGEST)
    for part in (space.encode("utf-8", "surrogatepass"), text.encode("utf-8", "surrogatepass")):
        digest.update(len(part).to_bytes(8, "little") + part)
    digest.update(rest)
    return digest.digest()
