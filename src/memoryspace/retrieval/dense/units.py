"""Validation and scaling of vectors to length 1, reproducible bit for bit."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from ...errors import InvalidInput
from .rows import Vectors

_LEAST_SQUARE, _MOST_SQUARE = 1e-30, 1e30  # of a length, near the limits of float32


def unit(vector: ArrayLike, dimensions: int, key: int | None) -> Vectors:
    """Return a vector scaled to length 1; zeros stay zeros. ``key`` is named in errors."""
    values = as_vectors(vector)
    if values.shape != (dimensions,):
        raise InvalidInput(
            f"{_name(key)} has the shape {values.shape}, this index holds vectors of "
            f"{dimensions} dimensions; embed it with the model the index was made with"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        square = float(values.dot(values))
    if not _LEAST_SQUARE < square < _MOST_SQUARE:
        return _unit_of_extremes(values, key)
    return values / np.float32(math.sqrt(square))


def units(table: Vectors, keys: list[int]) -> Vectors:
    """Scale many vectors, each exactly as if alone, so that equal vectors tie."""
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.array([row.dot(row) for row in table], np.float64)
    plain = (squares > _LEAST_SQUARE) & (squares < _MOST_SQUARE)
    lengths = np.sqrt(np.where(plain, squares, 1)).astype(np.float32)
    found: Vectors = table / lengths[:, np.newaxis]
    for row in np.flatnonzero(~plain).tolist():
        found[row] = _unit_of_extremes(table[row], keys[row])
    return found


def as_vectors(values: ArrayLike) -> Vectors:
    """Return numbers as a contiguous float32 array."""
    if isinstance(values, np.ndarray) and values.dtype == np.float32 and values.flags.c_contiguous:
        return values
    with np.errstate(over="ignore"):  # too large a number becomes infinite, which is rejected later
        return np.ascontiguousarray(values, np.float32)


def _unit_of_extremes(values: Vectors, key: int | None) -> Vectors:
    """Scale a vector that is zero, not finite, or too long or short to be squared."""
    if not np.isfinite(values).all():
        raise InvalidInput(f"{_name(key)} holds NaN or infinite numbers; it cannot be compared")
    length = float(np.linalg.norm(values.astype(np.float64)))
    return np.asarray(values.astype(np.float64) / length, np.float32) if length else values


def _name(key: int | None) -> str:
    return "the query vector" if key is None else f"the vector of key {key}"
