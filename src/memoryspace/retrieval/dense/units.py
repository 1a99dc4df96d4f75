"""Vectors of length 1: what may be one, and how it is made, bit for bit the same every time."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from ...errors import InvalidInput
from .rows import Vectors

_LEAST_SQUARE, _MOST_SQUARE = 1e-30, 1e30  # of lengths: float32 cannot hold much more


def unit(vector: ArrayLike, dimensions: int, key: int | None) -> Vectors:
    """Return a vector scaled to length 1, or zeros as they are. The key is for the complaint."""
    values = as_vectors(vector)
    if values.shape != (dimensions,):
        raise InvalidInput(
            f"{_whose(key)} has the shape {values.shape}, this index holds vectors of "
            f"{dimensions} dimensions; embed it with the model the index was made with"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        square = float(values.dot(values))
    if not _LEAST_SQUARE < square < _MOST_SQUARE:
        return _unit_of_extremes(values, key)
    return values / np.float32(math.sqrt(square))


def units(table: Vectors, keys: list[int]) -> Vectors:
    """Scale many vectors, each as if it were alone: equal ones must tie."""
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.array([row.dot(row) for row in table], np.float64)
    plain = (squares > _LEAST_SQUARE) & (squares < _MOST_SQUARE)
    lengths = np.sqrt(np.where(plain, squares, 1)).astype(np.float32)
    found: Vectors = table / lengths[:, np.newaxis]
    for row in np.flatnonzero(~plain).tolist():
        found[row] = _unit_of_extremes(table[row], keys[row])
    return found


def as_vectors(values: ArrayLike) -> Vectors:
    """Return numbers as float32, side by side in memory."""
    if isinstance(values, np.ndarray) and values.dtype == np.float32 and values.flags.c_contiguous:
        return values
    with np.errstate(over="ignore"):  # what is too great becomes infinite, and is refused as that
        return np.ascontiguousarray(values, np.float32)


def _unit_of_extremes(values: Vectors, key: int | None) -> Vectors:
    """Scale a vector that is zero, none at all, or too long or short to be squared."""
    if not np.isfinite(values).all():
        raise InvalidInput(f"{_whose(key)} holds NaN or infinite numbers; it cannot be compared")
    length = float(np.linalg.norm(values.astype(np.float64)))
    return np.asarray(values.astype(np.float64) / length, np.float32) if length else values


def _whose(key: int | None) -> str:
    return "the query vector" if key is None else f"the vector of key {key}"
