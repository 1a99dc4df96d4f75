"""Files of a dense index: a data file laid out like the chunks in memory, and a header naming it.

The data file gets a new name each time and the header is replaced last, so a crash at any point
leaves the old state or the new one. Loading maps the data file, which is never changed.
"""

from __future__ import annotations

import json
import mmap
import os
import secrets
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import msgspec
import numpy as np
from numpy.typing import NDArray

from ...errors import CorruptData
from ...files import write_atomic
from .rows import CHUNK, Chunk, Keys, Rows, Shape, Slots
from .scan import pack

HEADER = "dense.json"
FORMAT = 1

_TAIL_BYTES = 5  # per vector: its key and whether it is hidden
_ADVICE = "restore the folder or rebuild the index from the texts"


class DenseHeader(msgspec.Struct, frozen=True):
    """The description of a data file: whole chunks, then the keys, then the hidden flags.

    ``checksums`` cover the used parts of each chunk; the last one covers keys and flags.
    """

    format: int
    dimensions: int
    count: int
    chunk: int
    data: str
    checksums: list[int]


def save_rows(rows: Rows, folder: Path) -> None:
    """Write all vectors, the oldest first, without gaps from removals."""
    folder.mkdir(parents=True, exist_ok=True)
    name = f"dense-{secrets.token_hex(8)}.bin"
    try:
        with open(folder / name, "xb") as file:
            slots = rows.occupied()
            checksums = _write(file, rows, slots)
            file.flush()
            os.fsync(file.fileno())
        header = DenseHeader(FORMAT, rows.shape.dimensions, len(slots), CHUNK, name, checksums)
        write_atomic(folder / HEADER, _encode(header))
    except BaseException:
        with suppress(OSError):
            (folder / name).unlink(missing_ok=True)
        raise
    _delete_others(folder, name)


def load_rows(folder: Path, *, verify: bool) -> Rows:
    """Map saved vectors; ``verify`` reads all of them and compares the checksums."""
    header = _read_header(folder / HEADER)
    rows = Rows(header.dimensions)
    path = folder / header.data
    chunk_count = -(-header.count // CHUNK)
    size = chunk_count * rows.shape.chunk_bytes + header.count * _TAIL_BYTES
    found = path.stat().st_size if path.is_file() else 0
    if found != size or len(header.checksums) != chunk_count + 1:
        raise CorruptData(f"{path} has {found} bytes, {size} were written; {_ADVICE}")
    chunks = _map(path, rows.shape, chunk_count)
    if verify:
        _verify(path, header, chunks)
    rows.adopt(chunks, *_read_tail(path, header))
    return rows


def _write(file: BinaryIO, rows: Rows, slots: Slots) -> list[int]:
    """Write the chunks, the keys and the flags; return the checksums."""
    checksums: list[int] = []
    for begin in range(0, len(slots), CHUNK):
        checksum, start = 0, len(checksums) * rows.shape.chunk_bytes
        some = slots[begin : begin + CHUNK]
        for offset, part in _used(_compacted(rows, some), len(some)):
            file.seek(start + offset)  # skipped bytes become a hole in the file
            file.write(part)
            checksum = zlib.crc32(part, checksum)
        checksums.append(checksum)
    tail = rows.keys[slots].tobytes() + rows.hidden[slots].tobytes()
    file.seek(len(checksums) * rows.shape.chunk_bytes)
    file.write(tail)
    return [*checksums, zlib.crc32(tail)]


def _compacted(rows: Rows, slots: Slots) -> Chunk:
    """Return a new chunk with the vectors of these slots, in this order."""
    chunk = Chunk.empty(rows.shape)
    order = np.argsort(slots)
    size, coarse = len(slots), rows.shape.coarse
    chunk.vectors[order] = rows.vectors(slots[order])
    words = pack(chunk.vectors[:size])
    chunk.coarse[:, :size] = words[:, :coarse].T
    chunk.fine[:size] = words[:, coarse:]
    return chunk


def _used(chunk: Chunk, size: int) -> Iterator[tuple[int, memoryview]]:
    """Yield offset and bytes of each part of a chunk that ``size`` slots use."""
    offset = 0
    for field in (chunk.vectors, *chunk.coarse, chunk.fine):
        if field.size:
            yield offset, memoryview(field[:size]).cast("B")
        offset += field.nbytes


def _map(path: Path, shape: Shape, count: int) -> list[Chunk]:
    size = shape.chunk_bytes
    with open(path, "rb") as file:
        return [
            Chunk(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY, offset=size * i), shape)
            for i in range(count)
        ]


def _verify(path: Path, header: DenseHeader, chunks: list[Chunk]) -> None:
    for number, chunk in enumerate(chunks):
        checksum = 0
        for _, part in _used(chunk, min(CHUNK, header.count - number * CHUNK)):
            checksum = zlib.crc32(part, checksum)
        if checksum != header.checksums[number]:
            raise CorruptData(f"{path} is damaged in its chunk {number}; {_ADVICE}")


def _read_tail(path: Path, header: DenseHeader) -> tuple[Keys, NDArray[np.uint8]]:
    """Return keys and hidden flags. They are read anyway, so they are always verified."""
    size = header.count * _TAIL_BYTES
    with open(path, "rb") as file:
        file.seek(-size, os.SEEK_END)
        tail = file.read()
    if zlib.crc32(tail) != header.checksums[-1]:
        raise CorruptData(f"{path} is damaged in its keys; {_ADVICE}")
    keys = np.frombuffer(tail, np.int32, header.count)
    return keys.astype(np.int64), np.frombuffer(tail, np.uint8, header.count, keys.nbytes)


def _encode(header: DenseHeader) -> bytes:
    body = msgspec.json.encode(header)
    return json.dumps({"checksum": zlib.crc32(body), "header": body.decode()}).encode()


def _read_header(path: Path) -> DenseHeader:
    try:
        outer = json.loads(path.read_bytes())
        body = outer["header"].encode()
        if zlib.crc32(body) != outer["checksum"]:
            raise CorruptData(f"{path} does not match its checksum; {_ADVICE}")
        header = msgspec.json.decode(body, type=DenseHeader)
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no dense index in {path.parent}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptData(f"{path} is not a header of a dense index; {_ADVICE}") from error
    if header.format != FORMAT or header.chunk != CHUNK:
        raise CorruptData(f"{path} has the format {header.format}, this version reads {FORMAT}")
    return header


def _delete_others(folder: Path, name: str) -> None:
    for path in folder.glob("dense-*.bin"):
        if path.name != name:
            with suppress(OSError):  # in use elsewhere; the next save retries
                path.unlink()
