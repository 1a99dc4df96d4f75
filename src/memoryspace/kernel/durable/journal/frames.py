"""The file format of journal segments: a header, followed by frames.

    header  magic | u32 version | u32 salt | u64 first lsn | u64 previous lsn | u32 generation | u32 crc
    frame   u32 size | u32 crc | u64 lsn | f64 wall time | payload | zeros up to a multiple of 8

``size`` counts a frame without its padding, so it is never 0: zeros are the end. The crc starts
from the segment's random salt and the size, so neither bytes of another segment nor a payload that
looks like a frame can be mistaken for one. Lsns have no gap inside a segment. A segment records
which lsn it continues from, so an intended gap is not damage. A higher generation marks records
that were written again after the disk had failed.
"""  # noqa: E501  # a table

from __future__ import annotations

import struct
from collections.abc import Iterator
from zlib import crc32

import msgspec

from ....errors import CorruptData
from .damage import JournalTooNew

FORMAT_VERSION = 1
MAX_PAYLOAD = 1 << 30

_MAGIC = b"MSPJOURN"
_HEADER = struct.Struct("<8sIIQQI")
_CRC = struct.Struct("<I")
HEADER_BYTES = _HEADER.size + _CRC.size

_FRAME = struct.Struct("<IIQd")
_SIZE_AND_CRC = struct.Struct("<II")
_STAMP = struct.Struct("<Qd")
_LSN = struct.Struct("<Q")
FRAME_BYTES = _FRAME.size
_STEP = 8
MOST_AROUND = FRAME_BYTES + _STEP - 1  # the most bytes that a frame adds to its payload
_PADDING = tuple(bytes(-size % _STEP) for size in range(_STEP))
_FARTHEST = 1 << 32  # how far ahead an lsn may be and still be plausible


class Frame(msgspec.Struct, frozen=True, gc=False):
    """A record of the journal: its number, when it was appended, and its bytes."""

    lsn: int
    time: float
    payload: bytes


class SegmentHeader(msgspec.Struct, frozen=True):
    """The header of a segment."""

    salt: int
    first_lsn: int
    previous_lsn: int
    generation: int = 0

    def encoded(self) -> bytes:
        """Return the bytes a segment begins with."""
        data = _HEADER.pack(
            _MAGIC, FORMAT_VERSION, self.salt, self.first_lsn, self.previous_lsn, self.generation
        )
        return data + _CRC.pack(crc32(data))


class Hole(msgspec.Struct, frozen=True):
    """An unreadable stretch of a segment that is followed by intact frames."""

    offset: int
    bytes: int
    first_lsn: int
    last_lsn: int


def decode_header(data: bytes) -> SegmentHeader:
    """Decode a header; raise ``CorruptData`` or ``JournalTooNew`` if that is not possible."""
    if len(data) < HEADER_BYTES:
        raise CorruptData("the header is cut short")
    magic, version, salt, first, previous, generation = _HEADER.unpack_from(data)
    if magic != _MAGIC:
        raise CorruptData("the file does not begin like a journal segment")
    if crc32(data[: _HEADER.size]) != _CRC.unpack_from(data, _HEADER.size)[0]:
        raise CorruptData("the header's checksum is wrong")
    if version > FORMAT_VERSION:
        raise JournalTooNew(
            f"has format version {version}, this release reads up to {FORMAT_VERSION}; "
            "update memoryspace. Nothing was changed"
        )
    return SegmentHeader(salt, first, previous, generation)


def encode(lsn: int, time: float, payload: bytes, salt: int) -> bytes:
    """Return a frame's bytes, padding included."""
    size = FRAME_BYTES + len(payload)
    stamp = _STAMP.pack(lsn, time)
    crc = crc32(payload, crc32(stamp, salt ^ size))
    return b"".join((_SIZE_AND_CRC.pack(size, crc), stamp, payload, _PADDING[size & 7]))


class SegmentReader:
    """Iterates over the intact frames of a segment in lsn order, skipping damage.

    After the iteration, ``last_lsn`` is the last frame, ``end`` the offset behind it, ``holes``
    what was lost before it, and ``tail`` how many bytes behind it are not a frame.
    """

    def __init__(self, data: bytes, header: SegmentHeader) -> None:
        self._data = data
        self._salt = header.salt
        self.last_lsn = header.first_lsn - 1
        self.end = HEADER_BYTES
        self.tail = 0
        self.holes: list[Hole] = []

    def __iter__(self) -> Iterator[Frame]:
        data, salt, limit = self._data, self._salt, len(self._data)
        view, unpack = memoryview(data), _FRAME.unpack_from
        offset, lsn, last_start = self.end, self.last_lsn + 1, limit - FRAME_BYTES
        while True:
            if offset <= last_start:
                size, crc, found, time = unpack(data, offset)
                stop = offset + size
                if (
                    found == lsn
                    and FRAME_BYTES <= size <= limit - offset
                    and crc32(view[offset + 8 : stop], salt ^ size) == crc
                ):
                    yield Frame(lsn, time, data[offset + FRAME_BYTES : stop])
                    lsn += 1
                    offset = (stop + _STEP - 1) & -_STEP
                    continue
            self.end, self.last_lsn = offset, lsn - 1
            resumed = self._resume()
            if resumed is None:
                return
            offset, lsn = resumed

    def _resume(self) -> tuple[int, int] | None:
        """Find the next intact frame; record what lies before it as a hole."""
        self.tail = _nonzero_bytes(self._data[self.end :])
        if not self.tail:
            return None
        expected = self.last_lsn + 1
        for offset, lsn in self._candidates(expected):
            if self._is_frame(offset):
                if lsn > expected:
                    self.holes.append(Hole(self.end, offset - self.end, expected, lsn - 1))
                return offset, lsn
        return None

    def _candidates(self, expected: int) -> Iterator[tuple[int, int]]:
        """Yield the offsets, in steps of 8, that hold a plausible lsn. Must be cheap."""
        farthest = expected + _FARTHEST
        start = self.end + _STEP
        used = min(self.end + self.tail + _STEP, len(self._data))  # only zeros follow
        steps = max(0, (used - start) // _STEP)
        area = memoryview(self._data)[start : start + steps * _STEP]
        for step, (lsn,) in enumerate(_LSN.iter_unpack(area)):
            if expected <= lsn <= farthest:
                yield self.end + step * _STEP, lsn

    def _is_frame(self, offset: int) -> bool:
        left = len(self._data) - offset
        if left < FRAME_BYTES:
            return False
        size: int
        crc: int
        size, crc = _SIZE_AND_CRC.unpack_from(self._data, offset)
        if not FRAME_BYTES <= size <= left:
            return False
        body = memoryview(self._data)[offset + 8 : offset + size]
        return crc32(body, self._salt ^ size) == crc


def _nonzero_bytes(data: bytes) -> int:
    """Return the length of ``data`` without the zeros at its end."""
    if data == bytes(len(data)):  # fast for the usual case, a preallocated rest
        return 0
    return len(data.rstrip(b"\0"))


def guess_last_lsn(data: bytes, first_lsn: int) -> int:
    """Return how far a segment without a readable header seems to go, at least one record."""
    offset, lsn = HEADER_BYTES, first_lsn
    while offset + FRAME_BYTES <= len(data):
        size, _, found, _ = _FRAME.unpack_from(data, offset)
        if found != lsn or size < FRAME_BYTES:
            break
        offset, lsn = (offset + size + _STEP - 1) & -_STEP, lsn + 1
    return max(first_lsn, lsn - 1)
