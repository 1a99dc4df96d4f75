"""A segment file of the log, from the writer's point of view."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from ..disk import Disk
from .frames import SegmentHeader


class SegmentFile:
    """A segment of the log. Its file is open while it may hold bytes that are not durable."""

    __slots__ = ("end", "fd", "header", "path", "size")

    def __init__(self, path: Path, header: SegmentHeader, *, fd: int, end: int, size: int) -> None:
        self.path = path
        self.header = header
        self.fd = fd  # negative: closed
        self.end = end
        self.size = size  # zeroed ahead up to here; at most ``end`` if the file grows as written

    @property
    def first_lsn(self) -> int:
        """The lsn of its first frame, which may not be written yet."""
        return self.header.first_lsn

    @property
    def is_open(self) -> bool:
        """Whether its file is open."""
        return self.fd >= 0

    def close(self, disk: Disk) -> None:
        """Close the file. Everything in it is synced, so an error does not matter."""
        if self.fd >= 0:
            fd, self.fd = self.fd, -1
            with suppress(OSError):
                disk.close(fd)
