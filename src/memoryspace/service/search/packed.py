"""A vector as bytes to be kept: a byte for each number, and what proves whose it is.

    form (1) · digest (8) · scale (4) · numbers (one signed byte each)

The digest is over the space, the text and the rest. So bytes that were damaged, cut, meant for
another text or made by another embedder do not read back, and what does not read back is embedded
again. It guards against mistakes, not against whoever can write to the store.

Each number is rounded to 1/127 of the largest: the cosine of two vectors of 384 numbers moves by
about 0.001, a quarter of the bytes of float32 are needed, and which memories are found does not
change measurably (see docs/recall.md).
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
    """Return the bytes of the vector that an embedder of this name made of a text."""
    scales, numbers = _split(vector[np.newaxis])
    rest: bytes = scales.tobytes() + numbers.tobytes()
    return _FORM + _digest(space, text, rest) + rest


def rounded(vectors: Vector) -> Vector:
    """Return rows as they come back: whoever made them must rank as whoever reads them."""
    scales, numbers = _split(vectors)
    return numbers.astype(np.float32) * scales


def unpack(kept: bytes, space: str, text: str, dimensions: int) -> Vector | None:
    """Return the vector in bytes from a store, or ``None`` if they are not what was packed."""
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
    scales[scales == 0] = 1.0  # of a number too small to be divided
    return scales, np.clip(np.rint(vectors / scales), -_MOST, _MOST).astype(np.int8)


def _digest(space: str, text: str, rest: bytes) -> bytes:
    said = blake2b(digest_size=_DIGEST)
    for part in (space.encode("utf-8", "surrogatepass"), text.encode("utf-8", "surrogatepass")):
        said.update(len(part).to_bytes(8, "little") + part)
    said.update(rest)
    return said.digest()
