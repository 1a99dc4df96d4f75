"""A reader of the safetensors format: eight bytes of length, a JSON header, the numbers."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import CorruptData

_TYPES = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "I64": np.int64, "I32": np.int32}
_MOST_HEADER = 100_000_000  # bytes, the limit of the format


def read_tensors(path: Path) -> dict[str, NDArray[Any]]:
    """Map a file into memory and return its tensors by name; numbers are read on use."""
    size = path.stat().st_size
    with open(path, "rb") as file:
        start = file.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else _MOST_HEADER + 1
        if length > min(size, _MOST_HEADER):
            raise CorruptData(f"{path} is not a safetensors file, or is truncated; reinstall it")
        header = file.read(length)
    data = np.memmap(path, np.uint8, "r", offset=8 + length) if size > 8 + length else _NOTHING
    try:
        entries = json.loads(header)
        entries.pop("__metadata__", None)
        return {name: _tensor(data, entry) for name, entry in entries.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptData(f"{path} cannot be read ({error}); reinstall it") from error


_NOTHING = np.empty(0, np.uint8)


def _tensor(data: NDArray[np.uint8], entry: dict[str, Any]) -> NDArray[Any]:
    begin, end = entry["data_offsets"]
    if not 0 <= begin <= end <= len(data):
        raise ValueError("its numbers are incomplete")
    return np.frombuffer(data[begin:end], _TYPES[entry["dtype"]]).reshape(entry["shape"])
