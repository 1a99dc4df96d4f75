"""Arrays in a folder: written all or not at all, read back without being loaded.

``NAME.json`` names the data file of the latest save and says where each array stands in it, with
its checksum. The data file is written first, under a new number, and made durable; then the JSON
file is replaced, which is the moment of truth; then older data files go.
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
    """A sound index of another time: a later version's, or of words read otherwise. Rebuild it."""


class Saved(NamedTuple):
    """What was read: the arrays, which must not be written to, and what was said about them."""

    about: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


def save_arrays(folder: Path, name: str, arrays: Arrays, about: Mapping[str, Any]) -> None:
    """Write arrays and a JSON-like value about them in the place of what was saved before."""
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
        with suppress(OSError):  # on Windows, not while it is open; the next save tries again
            each.unlink()


def load_arrays(folder: Path, name: str, *, verify: bool = True) -> Saved:
    """Open what was saved last; ``verify`` reads it all once and compares its checksums.

    Raises ``FileNotFoundError`` if nothing was saved, ``CorruptData`` if it cannot be used.
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
        raise CorruptData(f"{path} is no index of this package; rebuild it in another folder")
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
            return b""  # nothing cannot be mapped
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
