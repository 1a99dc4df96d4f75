"""Named arrays in a folder: saved atomically, and memory-mapped when loaded.

``NAME.json`` names the data file of the latest save, with the offset and checksum of each array.
The data file is written first, under a new number, and synced; then the JSON file is replaced,
which commits the save; then older data files are deleted.
"""

from __future__ import annotations

import json
import mmap
import os
import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import CorruptData
from ..files import write_atomic

Arrays = Mapping[str, NDArray[Any]]

FORMAT = "memoryspace arrays"
VERSION = 1

_ALIGNED = 64  # bytes
_CHUNK = 1 << 24  # bytes written and checked at once


class OutdatedIndex(CorruptData):
    """An intact index that this version cannot use: a newer format, or another way to read words.

    Rebuild the index from the store.
    """


class Saved(NamedTuple):
    """What was loaded: the arrays, which are read-only, and the value saved with them."""

    about: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


def save_arrays(folder: Path, name: str, arrays: Arrays, about: Mapping[str, Any]) -> None:
    """Save arrays and a JSON-like value about them; this replaces the previous save."""
    folder.mkdir(parents=True, exist_ok=True)
    older = dict(_data_files(folder, name))
    path = folder / f"{name}.{max(older.values(), default=0) + 1}.data"
    try:
        places = _write(path, arrays)
        body = {"about": dict(about), "data": path.name, "arrays": places}
        write_atomic(folder / f"{name}.json", _framed(body))
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    for each in older:
        with suppress(OSError):  # fails on Windows while the file is open; the next save retries
            each.unlink()


def load_arrays(folder: Path, name: str, *, verify: bool = True) -> Saved:
    """Map the arrays of the latest save; ``verify`` reads them once and compares checksums.

    Raises:
        FileNotFoundError: If nothing was saved.
        CorruptData: If the save cannot be used.
    """
    path = folder / f"{name}.json"
    body = _unframed(path)
    try:
        data = _mapped(folder / body["data"])
        arrays = {
            each: _array(data, place, verify=verify) for each, place in body["arrays"].items()
        }
        return Saved(dict(body["about"]), arrays)
    except (KeyError, TypeError, AttributeError, ValueError, OSError) as error:
        raise CorruptData(f"{path} does not fit its data ({error}); rebuild the index") from error


def _data_files(folder: Path, name: str) -> Iterator[tuple[Path, int]]:
    form = re.compile(rf"{re.escape(name)}\.([0-9]+)\.data")
    for path in folder.iterdir():
        if found := form.fullmatch(path.name):
            yield path, int(found[1])


def _write(path: Path, arrays: Arrays) -> dict[str, dict[str, Any]]:
    places: dict[str, dict[str, Any]] = {}
    with open(path, "xb") as file:
        for name, array in arrays.items():
            file.write(bytes(-file.tell() % _ALIGNED))
            flat = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
            place = {"offset": file.tell(), "dtype": flat.dtype.str, "count": len(flat)}
            places[name] = {**place, "crc": _write_array(file, flat)}
        file.flush()
        os.fsync(file.fileno())
    return places


def _write_array(file: IO[bytes], array: NDArray[Any]) -> int:
    checksum = 0
    for part in _chunks(array):
        checksum = zlib.crc32(part, checksum)
        file.write(part)
    return checksum


def _chunks(array: NDArray[Any]) -> Iterator[memoryview]:
    raw = array.data.cast("B") if len(array) else memoryview(b"")
    return (raw[at : at + _CHUNK] for at in range(0, len(raw), _CHUNK))


def _framed(body: dict[str, Any]) -> bytes:
    text = json.dumps(body, sort_keys=True)
    frame = {"format": FORMAT, "version": VERSION, "crc": zlib.crc32(text.encode()), "body": body}
    return json.dumps(frame, sort_keys=True, indent=1).encode()


def _unframed(path: Path) -> dict[str, Any]:
    try:
        frame = json.loads(path.read_bytes())
    except ValueError as error:
        raise CorruptData(f"{path} is damaged ({error}); rebuild the index") from error
    if not isinstance(frame, dict) or frame.get("format") != FORMAT:
        raise CorruptData(f"{path} is not a memoryspace index; rebuild it in another folder")
    if frame.get("version") != VERSION:
        raise OutdatedIndex(
            f"{path} has format {frame.get('version')!r}, this version reads {VERSION}; "
            "upgrade memoryspace or rebuild the index"
        )
    body = frame.get("body")
    text = json.dumps(body, sort_keys=True)
    if not isinstance(body, dict) or zlib.crc32(text.encode()) != frame.get("crc"):
        raise CorruptData(f"{path} is damaged: its checksum differs; rebuild the index")
    return body


def _mapped(path: Path) -> mmap.mmap | bytes:
    with open(path, "rb") as file:
        if not os.fstat(file.fileno()).st_size:
            return b""  # an empty file cannot be mapped
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _array(data: mmap.mmap | bytes, place: dict[str, Any], *, verify: bool) -> NDArray[Any]:
    dtype, count, offset = np.dtype(place["dtype"]), place["count"], place["offset"]
    if offset + count * dtype.itemsize > len(data):
        raise ValueError("the data file is too short")
    array = np.frombuffer(data, dtype, count, offset) if count else np.zeros(0, dtype)
    if verify and _checksum(array) != place["crc"]:
        raise ValueError("a checksum differs")
    return array


def _checksum(array: NDArray[Any]) -> int:
    checksum = 0
    for part in _chunks(array):
        checksum = zlib.crc32(part, checksum)
    return checksum
