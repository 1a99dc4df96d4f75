"""``Quantised``: a table of four-bit numbers, decoded row by row.

Each 32 numbers of a row share a scale: two bytes of half precision, then sixteen bytes whose lower
halves are the first sixteen numbers and whose upper halves are the others, all shifted by 8.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

BLOCK = 32  # numbers
BLOCK_BYTES = 2 + BLOCK // 2
_SHIFT = np.float32(8)


class Quantised:
    """A table that stays in four bits; ``table[rows]`` returns those rows as floats."""

    def __init__(self, data: NDArray[np.uint8], rows: int, columns: int) -> None:
        if columns % BLOCK or len(data) != rows * (columns // BLOCK) * BLOCK_BYTES:
            raise ValueError(f"{len(data)} bytes are not {rows} × {columns} numbers of four bits")
        self.shape = (rows, columns)
        self._blocks = data.reshape(rows, columns // BLOCK, BLOCK_BYTES)

    def __getitem__(self, rows: NDArray[np.int64] | slice) -> Floats:
        blocks = np.ascontiguousarray(self._blocks[rows])
        scales = blocks[..., :2].copy().view("<f2").astype(np.float32)
        packed = blocks[..., 2:]
        numbers = np.concatenate([packed & 15, packed >> 4], axis=-1).astype(np.float32)
        numbers -= _SHIFT
        numbers *= scales
        return numbers.reshape(len(blocks), self.shape[1])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self[:].astype(np.float32 if dtype is None else dtype)
