"""Reads an LMDB file page by page, without mapping it, to detect truncation and find intact values.

Touching a mapped page beyond the end of the file kills the process, and that cannot be caught. So
the length is first compared with the file's own metadata. LMDB may leave unused pages at the end
unwritten; only a missing page that is in use counts as damage.

    page 0, page 1: meta   │ page size, root of either tree, last page, transaction
    other pages            │ number, flags, then nodes: children, or keys with values
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from struct import Struct as Layout
from struct import error as TooShort  # noqa: N812 (what it means here)
from typing import NamedTuple

from ....errors import CorruptData
from .contract import MAX_KEY, is_intact
from .lmdb_form import KEY

_MAGIC = 0xBEEFC0DE
_META = Layout("<16xII8x8xI36xQ40xQQQ")  # magic, version, page size, both roots, last page, txn
_HEAD = Layout("<Q2xHHH")  # page number, flags, end of the pointers, begin of the nodes
_NODE = Layout("<HHHH")  # length or page (low, middle), flags or page (high), length of the key
_NUMBER = Layout("<Q")
_POINTERS = 16  # where the pointers to the nodes begin
_BRANCH, _LEAF, _LEAF2 = 1, 2, 0x20
_BIG = 1  # a node whose value is on pages of its own
_NO_PAGE = 2**64 - 1


class Meta(NamedTuple):
    """The metadata of a file."""

    page_size: int
    roots: tuple[int, int]
    last_page: int
    transaction: int


class Node(NamedTuple):
    """A key and the location of its value."""

    key: bytes
    length: int
    offset: int  # of the value in the file
    is_big: bool


class FramePosition(NamedTuple):
    """The location of a frame in the file, and its first bytes."""

    offset: int
    length: int
    head: bytes


def require_whole(path: Path) -> None:
    """Raise ``CorruptData`` for a file that lost pages at its end.

    Files that are empty or not LMDB files are left for LMDB to refuse.
    """
    with open(path, "rb") as file:
        pages = LMDBPages(file.fileno())
        if pages.meta is None or pages.size >= pages.claimed_size:
            return
        missing = pages.first_missing()
    if missing is not None:
        raise CorruptData(
            f"{path} is cut short: it has {pages.size} bytes of {pages.claimed_size}, and page "
            f"{missing}, which is in use, is missing; restore it from a backup, or open the space "
            "with salvage=True to continue with everything that is intact"
        )
    os.truncate(path, pages.claimed_size)  # only unused pages: need not be checked again


class LMDBPages:
    """The pages of a file, by number. Their contents are not trusted."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.meta = self._newest_meta()  # before the size: writers write pages first
        self.size = os.fstat(fd).st_size
        self.page_size = mmap.PAGESIZE if self.meta is None else self.meta.page_size

    @property
    def claimed_size(self) -> int:
        """How long the file must be according to its metadata."""
        return 0 if self.meta is None else (self.meta.last_page + 1) * self.meta.page_size

    def first_missing(self) -> int | None:
        """Follow both trees; return a page that is in use but not in the file."""
        assert self.meta is not None
        wanted = [root for root in self.meta.roots if root != _NO_PAGE]
        seen: set[int] = set()
        while wanted:
            number = wanted.pop()
            if not self._has(number):
                return number
            if number in seen:  # a damaged tree may have cycles
                continue
            seen.add(number)
            children, values = self._below(number)
            missing = [last for last in values if not self._has(last)]
            if missing:
                return missing[0]
            wanted += children
        return None

    def intact(self) -> dict[int, FramePosition]:
        """Return every intact frame on any leaf, except for keys with two different frames."""
        found: dict[int, FramePosition] = {}
        doubtful: set[int] = set()
        for number in range(self.size // self.page_size):
            for key, place in self._frames(number):
                if found.setdefault(key, place)[1:] != place[1:]:
                    doubtful.add(key)
        return {key: found[key] for key in sorted(found.keys() - doubtful)}

    def frame(self, place: FramePosition) -> bytes:
        """Return the frame at a position."""
        return os.pread(self._fd, place.length, place.offset)

    def _newest_meta(self) -> Meta | None:
        first = self._meta(0)
        second = None if first is None else self._meta(first.page_size)
        if first is None or second is None:
            return None
        return first if first.transaction >= second.transaction else second

    def _meta(self, offset: int) -> Meta | None:
        data = os.pread(self._fd, _META.size, offset)
        if len(data) < _META.size:
            return None
        magic, _, page_size, free, main, last_page, transaction = _META.unpack(data)
        if magic != _MAGIC or not 512 <= page_size <= 65536:
            return None
        return Meta(page_size, (free, main), last_page, transaction)

    def _has(self, number: int) -> bool:
        return (number + 1) * self.page_size <= self.size

    def _below(self, number: int) -> tuple[list[int], list[int]]:
        """Return the children of a page, and the last page of each of its long values."""
        page = self._page(number)
        _, flags, _, _ = _HEAD.unpack_from(page)
        if flags & _BRANCH:
            return list(_branches(page)), []
        if not flags & _LEAF or flags & _LEAF2:
            return [], []
        long = (node for node in self._nodes(number, page) if node.is_big and node.length)
        return [], [(node.offset + node.length - 1) // self.page_size for node in long]

    def _frames(self, number: int) -> Iterator[tuple[int, FramePosition]]:
        page = self._page(number)
        own, flags, _, _ = _HEAD.unpack_from(page)
        if own != number or not flags & _LEAF or flags & _LEAF2:
            return
        for node in self._nodes(number, page):
            if len(node.key) == KEY.size and node.offset + node.length <= self.size:
                (key,) = KEY.unpack(node.key)
                frame = os.pread(self._fd, node.length, node.offset)
                if key <= MAX_KEY and is_intact(key, frame):
                    yield key, FramePosition(node.offset, node.length, frame[:4])

    def _nodes(self, number: int, page: bytes) -> Iterator[Node]:
        for start in _starts(page):
            try:
                low, high, flags, key_length = _NODE.unpack_from(page, start)
                key = page[start + _NODE.size :][:key_length]
                value, is_big = start + _NODE.size + key_length, bool(flags & _BIG)
                offset = number * self.page_size + value
                if is_big:  # the value follows the header of its first page
                    (first,) = _NUMBER.unpack_from(page, value)
                    offset = first * self.page_size + _POINTERS
            except TooShort:
                continue
            yield Node(key, low | high << 16, offset, is_big)

    def _page(self, number: int) -> bytes:
        page = os.pread(self._fd, self.page_size, number * self.page_size)
        return page.ljust(_POINTERS, b"\0")


def _starts(page: bytes) -> Iterator[int]:
    """Yield the offsets of the nodes of a page, as far as its pointers are inside it."""
    _, _, end, _ = _HEAD.unpack_from(page)
    for place in range(_POINTERS, min(end, len(page) - 1), 2):
        yield int.from_bytes(page[place : place + 2], "little")


def _branches(page: bytes) -> Iterator[int]:
    for start in _starts(page):
        if start + _NODE.size <= len(page):
            low, middle, high, _ = _NODE.unpack_from(page, start)
            yield low | middle << 16 | high << 32
