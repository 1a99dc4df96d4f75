"""Images: the file format of checkpoints, its writer and its reader.

    magic, version │ chunk, chunk, … │ closing chunk

A chunk is kind, crc32 (begun with the kind), length and its bytes. First come the *blocks*: the
objects' bodies laid out exactly as a compacted heap would hold them, so that reading an image is
copying it into the arena. Then come the columns of the table, the references, and a closing chunk
with the figures that tie them together. A file without its closing chunk is not an image.

The writer works in slices while the program runs. An object that changes after it was written is
written again at the end, and its first place in the image becomes a hole. So the finished image is
the heap at the moment of the last slice.
"""

from __future__ import annotations

import mmap
import os
import struct
import sys
import time
import zlib
from array import array
from collections.abc import Callable, Iterator
from contextlib import suppress
from io import BufferedReader
from pathlib import Path

import msgspec
from msgspec import Struct

from ...errors import CorruptData
from ..heap.heap import Heap
from ..heap.space import GRANULE, HEADER
from ..heap.table import COLD, FOREVER, LIVE, NOT_HOT, ObjectTable
from .disk import Disk

MAGIC = b"MSPIMAGE"
VERSION = 1

_START = struct.Struct("<8sI4x")
_CHUNK = struct.Struct("<IIQ")
_BLOCK = struct.Struct("<II")
_BLOCKS, _COLUMN, _CLOSING = 1, 2, 3
_USED = 1
_SPILLED_AT_ONCE = 512
_WINDOW = 128  # rows captured between two checks of the clock

COLUMNS = (
    "handle", "size", "weight", "stamp", "created", "expires", "accessed", "uses", "importance",
    "tenant", "tags", "edges", "generations",
)  # fmt: skip


Spill = Callable[[list[tuple[int, bytes]]], None]  # places bodies of slots


class ImageTooNew(CorruptData):
    """The image has a format that this version cannot read."""


class ClosingChunk(Struct, array_like=True):
    """The closing chunk of an image: the figures that tie the other chunks together."""

    lsn: int
    time: float
    byteorder: str
    chunks: int
    rows: int
    live: int
    top: int
    tenants: list[str]
    tenant_users: list[int]
    tenant_bytes: list[int]
    tags: list[list[str]]
    tag_users: list[int]
    free_tenants: list[int]
    free_tags: list[int]
    roots: int
    pinned: int
    held_bytes: int
    weight: int
    tombstones: list[tuple[int, int]]


class ImageWriter:
    """Writes a heap to a file, one slice at a time, and renames the file at the end."""

    def __init__(
        self,
        heap: Heap,
        temporary: Path,
        disk: Disk,
        *,
        cold_body: Callable[[int], bytes] | None = None,
    ) -> None:
        self._heap = heap
        self._temporary = temporary
        self.name = temporary  # the final name of the file
        self._disk = disk
        self._cold_body = cold_body  # if given, cold bodies are written too
        self._fd: int | None = disk.open(self._temporary, create=True)
        self.bytes_written = 0
        self._chunks = 0
        try:
            self._write(_START.pack(MAGIC, VERSION))
        except BaseException:
            disk.close(self._fd)
            raise
        self._table = ObjectTable()  # a copy of the rows, row by row
        self._next = 0
        self._top = 0
        self._blocks: list[bytes] = []
        self._holes = array("Q")
        self._changed: set[int] = set()
        self._closing: ClosingChunk | None = None
        for listeners in (heap.on_stored, heap.on_freed, heap.on_changed):
            listeners.append(self._note)
        heap.references.walk_begins()

    def capture(
        self, seconds: float, lsn: int, now: float, tombstones: list[tuple[int, int]]
    ) -> bool:
        """Capture for about ``seconds``, with the lock held; return whether it is complete."""
        deadline = time.perf_counter() + seconds
        while True:  # at least once: however short the slices, they come to an end
            if self._next < self._heap.table.rows:
                self._capture_rows()
            elif self._changed:
                self._capture_changed()
            else:
                self._close_capture(lsn, now, tombstones)
                return True
            if time.perf_counter() >= deadline:
                return False

    def finish(self) -> int:
        """Write the rest, sync and rename the file, without the lock; return the lsn."""
        assert self._closing is not None, "capture has not finished"
        assert self._fd is not None
        for name in COLUMNS:
            self._chunk(_COLUMN, getattr(self._table, name).tobytes())
        for part in (self._table.flags, self._table.age, self._table.address.tobytes(),
                     self._edges[0].tobytes(), self._edges[1].tobytes(),
                     self._free_slots.tobytes(), self._holes.tobytes()):  # fmt: skip
            self._chunk(_COLUMN, bytes(part))
        self._closing.chunks = self._chunks
        self._chunk(_CLOSING, msgspec.msgpack.encode(self._closing))
        self._disk.fsync(self._fd)
        self._close()
        self._disk.replace(self._temporary, self.name)
        self._disk.sync_folder(self.name.parent)
        return self._closing.lsn

    def abandon(self) -> None:
        """Stop and remove the file."""
        self._stop_listening()
        with suppress(OSError):  # removed at the next opening
            self._close()
            self._disk.unlink(self._temporary)

    def _close(self) -> None:
        if self._fd is not None:
            fd, self._fd = self._fd, None  # never closed twice, even after an error
            self._disk.close(fd)

    def _note(self, slot: int) -> None:
        if slot < self._next:
            self._changed.add(slot)

    def _capture_rows(self) -> None:
        start, table, copy = self._next, self._heap.table, self._table
        stop = min(start + _WINDOW, table.rows)
        for name in COLUMNS:
            getattr(copy, name).extend(getattr(table, name)[start:stop])
        copy.flags += table.flags[start:stop]
        copy.age += table.age[start:stop]
        for slot in range(start, stop):
            copy.address.append(self._emit(slot))
        self._next = stop
        self._flush()

    def _capture_changed(self) -> None:
        """Write changed rows again, and their bodies if those changed."""
        table, copy = self._heap.table, self._table
        for _ in range(min(_WINDOW, len(self._changed))):
            slot = self._changed.pop()
            same = copy.handle[slot] == table.handle[slot] and copy.stamp[slot] == table.stamp[slot]
            if not same and copy.address[slot] != NOT_HOT:
                self._holes.append(copy.address[slot])
            address = copy.address[slot] if same else NOT_HOT
            for name in COLUMNS:
                getattr(copy, name)[slot] = getattr(table, name)[slot]
            copy.flags[slot], copy.age[slot] = table.flags[slot], table.age[slot]
            if same and address != NOT_HOT:
                copy.flags[slot] &= ~COLD  # its body is already in the image
            copy.address[slot] = address if same else self._emit(slot)
        self._flush()

    def _emit(self, slot: int) -> int:
        """Add an object's block to the image; return its address, or ``NOT_HOT`` for no block."""
        table = self._heap.table
        flags = table.flags[slot]
        if not flags & LIVE:
            return NOT_HOT
        if flags & COLD:
            if self._cold_body is None:
                return NOT_HOT
            body = self._cold_body(slot)
            self._forget_cold(slot)
        else:
            body = self._heap.read(slot)
        granules = (len(body) + 23) >> 4
        block = _BLOCK.pack(granules << 2 | _USED, slot) + body
        self._blocks.append(block.ljust(granules * GRANULE, b"\0"))
        address = self._top * GRANULE + HEADER
        self._top += granules
        return address

    def _forget_cold(self, slot: int) -> None:
        self._table.flags[slot] &= ~COLD

    def _close_capture(self, lsn: int, now: float, tombstones: list[tuple[int, int]]) -> None:
        heap = self._heap
        self._stop_listening()
        self._edges = heap.references.rows()
        self._free_slots = array("I", heap.table.free_slots)
        names, tags = heap.tenants.names, heap.tags
        self._closing = ClosingChunk(
            lsn, now, sys.byteorder, 0, heap.table.rows, heap.table.live, self._top,
            names.values[:], names.users[:], heap.tenants.bytes[:],
            [list(each) for each in tags.values], tags.users[:], names.free[:], tags.free[:],
            heap.roots, heap.pinned, heap.held_bytes, heap.weight, list(tombstones),
        )  # fmt: skip

    def _stop_listening(self) -> None:
        heap = self._heap
        if self._note in heap.on_stored:
            for listeners in (heap.on_stored, heap.on_freed, heap.on_changed):
                listeners.remove(self._note)
            heap.references.walk_ends()

    def _flush(self) -> None:
        if self._blocks:
            self._chunk(_BLOCKS, b"".join(self._blocks))
            self._blocks.clear()

    def _chunk(self, kind: int, data: bytes) -> None:
        self._write(_CHUNK.pack(kind, zlib.crc32(data, kind), len(data)) + data)
        self._chunks += 1

    def _write(self, data: bytes) -> None:
        assert self._fd is not None
        self._disk.pwrite(self._fd, data, self.bytes_written)
        self.bytes_written += len(data)


class Image:
    """A verified image, mapped into memory; a context manager."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with _opened(path) as file:
            size = os.fstat(file.fileno()).st_size
            if size < _START.size:
                raise CorruptData(f"{path}: too short for a checkpoint")
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._bytes = memoryview(self._map)
        self._views: list[memoryview] = []  # all slices taken of the bytes
        try:
            self._check_start()
            self._blocks: list[memoryview] = []
            self._columns: list[memoryview] = []
            self.closing = self._read_chunks()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Image:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        for part in [*self._views, self._bytes]:
            part.release()
        self._map.close()

    def load_into(self, heap: Heap, spill: Spill) -> None:
        """Load the image into an empty heap; ``spill`` takes bodies that do not fit."""
        closing = self.closing
        self._load_table(heap)
        self._load_sums(heap)
        table = heap.table
        if closing.top * GRANULE <= heap.space.capacity:
            heap.space.adopt(self._blocks, closing.top, array("Q", self._part(-1)))
        else:
            self._place_one_by_one(heap, spill)
        heap.due = _expiries_of(table)
        heap.recall_names(table.named())

    def _load_table(self, heap: Heap) -> None:
        table, rows = heap.table, self.closing.rows
        for number, name in enumerate(COLUMNS):
            column = getattr(table, name)
            column.frombytes(self._columns[number])
        table.flags[:] = self._columns[len(COLUMNS)]
        table.age[:] = self._columns[len(COLUMNS) + 1]
        table.address.frombytes(self._columns[len(COLUMNS) + 2])
        table.references = array("I", bytes(4 * rows))
        target, following = array("Q", self._part(-4)), array("i", self._part(-3))
        heap.references.load(target, following)
        table.free_slots = array("I", self._part(-2))
        table.rows, table.live = rows, self.closing.live
        heap.lsn = self.closing.lsn

    def _part(self, number: int) -> bytes:
        return bytes(self._columns[number])

    def _load_sums(self, heap: Heap) -> None:
        closing = self.closing
        heap.tenants.names.load(closing.tenants, closing.tenant_users, closing.free_tenants)
        heap.tenants.bytes = closing.tenant_bytes
        heap.tags.load([tuple(each) for each in closing.tags], closing.tag_users,
                       closing.free_tags)  # fmt: skip
        heap.roots, heap.pinned = closing.roots, closing.pinned
        heap.held_bytes, heap.weight = closing.held_bytes, closing.weight

    def _place_one_by_one(self, heap: Heap, spill: Spill) -> None:
        """Place bodies through ``spill``, for an image that is bigger than the heap."""
        table = heap.table
        blocks = b"".join(self._blocks)
        displaced: list[tuple[int, bytes]] = []
        for slot in table.living():
            address = table.address[slot]
            if address != NOT_HOT:
                table.address[slot] = NOT_HOT
                displaced.append((slot, blocks[address : address + table.size[slot]]))
            if len(displaced) == _SPILLED_AT_ONCE:
                spill(displaced)
                displaced = []
        spill(displaced)

    def _check_start(self) -> None:
        magic, version = _START.unpack_from(self._bytes)
        if magic != MAGIC:
            raise CorruptData(f"{self.path} is not a checkpoint of a memory space")
        if version > VERSION:
            raise ImageTooNew(
                f"{self.path} has format {version}, this version reads up to {VERSION}; "
                "open it with a newer memoryspace"
            )

    def _read_chunks(self) -> ClosingChunk:
        chunks = list(self._chunks())
        if not chunks or chunks[-1][0] != _CLOSING:
            raise CorruptData(f"{self.path} ends before its closing chunk")
        closing = self._closing(chunks.pop()[1])
        if closing.chunks != len(chunks) or closing.byteorder != sys.byteorder:
            raise CorruptData(f"{self.path} does not match its closing chunk")
        self._blocks = [data for kind, data in chunks if kind == _BLOCKS]
        self._columns = [data for kind, data in chunks if kind == _COLUMN]
        return closing

    def _chunks(self) -> Iterator[tuple[int, memoryview]]:
        place, end = _START.size, len(self._bytes)
        while place + _CHUNK.size <= end:
            kind, crc, length = _CHUNK.unpack_from(self._bytes, place)
            data = self._bytes[place + _CHUNK.size : place + _CHUNK.size + length]
            self._views.append(data)
            if len(data) != length or zlib.crc32(data, kind) != crc:
                raise CorruptData(f"{self.path}: the chunk at {place} is damaged")
            yield kind, data
            place += _CHUNK.size + length

    def _closing(self, data: memoryview) -> ClosingChunk:
        try:
            return msgspec.msgpack.decode(data, type=ClosingChunk)
        except msgspec.DecodeError as error:
            raise CorruptData(f"{self.path}: its closing chunk cannot be decoded") from error


def _opened(path: Path) -> BufferedReader:
    try:
        return open(path, "rb")
    except IsADirectoryError as error:
        raise CorruptData(f"{path} is a folder, not the file of a checkpoint; remove it") from error


def _expiries_of(table: ObjectTable) -> list[tuple[float, int]]:
    """Return the expiry of each object that has one, earliest first: a heap."""
    if table.expires.count(FOREVER) == len(table.expires):
        return []  # one pass in C; mostly nothing expires
    ends = zip(table.expires, table.handle, strict=True)
    return sorted((end, handle) for end, handle in ends if handle and end != FOREVER)
