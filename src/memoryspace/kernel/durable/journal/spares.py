"""Spares: files prepared in the background to become the next segment.

A sync of a file that already has its final length need not write metadata, which makes it a third
cheaper. Zeroing takes long, so writers never do it: they use the spare if it is ready, or else a
file that grows, which they leave as soon as a spare is ready.
"""

from __future__ import annotations

import secrets
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from ....events import EventStream
from ..disk import Disk
from .folder import SPARE, segment_path
from .frames import HEADER_BYTES, SegmentHeader
from .segments import SegmentFile

NEVER = sys.maxsize
_STEP_BYTES = 1024 * 1024
_WORTH_IT = 64 * 1024  # a smaller log needs no spare


class Spare:
    """A zeroed file that is not part of the log yet."""

    __slots__ = ("fd", "path", "size")

    def __init__(self, path: Path, fd: int) -> None:
        self.path = path
        self.fd = fd
        self.size = 0

    @classmethod
    def create(cls, disk: Disk, folder: Path) -> Spare:
        """Create an empty spare."""
        path = folder / f"{secrets.token_hex(8)}{SPARE}"
        return cls(path, disk.open(path, create=True))

    def fill(self, disk: Disk, size: int) -> Iterator[None]:
        """Write zeros up to ``size`` and sync, in steps, so that no sync has much to write."""
        zeros = bytes(min(size, _STEP_BYTES))
        while self.size < size:
            step = memoryview(zeros)[: size - self.size]
            disk.pwrite(self.fd, step, self.size)
            disk.fdatasync(self.fd)
            self.size += len(step)
            yield

    def become(self, disk: Disk, folder: Path, header: SegmentHeader) -> SegmentFile:
        """Turn into an empty segment with this header. After an error it is still a spare."""
        disk.pwrite(self.fd, header.encoded(), 0)
        return self.enter(disk, folder, header, end=HEADER_BYTES)

    def enter(self, disk: Disk, folder: Path, header: SegmentHeader, *, end: int) -> SegmentFile:
        """Take the name of a segment whose frames are written, up to ``end``."""
        path = segment_path(folder, header.first_lsn)
        disk.replace(self.path, path)
        return SegmentFile(path, header, fd=self.fd, end=end, size=self.size)

    def discard(self, disk: Disk) -> None:
        """Remove the file if the disk allows it; otherwise the next opening does."""
        with suppress(OSError):
            disk.close(self.fd)
        with suppress(OSError):
            disk.unlink(self.path)


class Spares:
    """At most one spare. ``ask`` schedules ``prepare`` in the background."""

    def __init__(self, disk: Disk, folder: Path, size: int, events: EventStream) -> None:
        self._disk, self._folder, self._size, self._events = disk, folder, size, events
        self._lock = threading.Lock()
        self._ready: Spare | None = None
        self._asked = False
        self._closed = False
        self.ask: Callable[[], None] | None = None  # None: prepare none
        self.on_ready: Callable[[], None] = lambda: None

    @property
    def is_ready(self) -> bool:
        """Whether a spare is ready."""
        return self._ready is not None

    def grows(self, segment: SegmentFile) -> bool:
        """Return whether a segment's file grows as it is written."""
        return segment.size < self._size

    def due_at(self, segment: SegmentFile) -> int:
        """Return the offset at which to call ``order``; early if the file grows."""
        if self.ask is None or self._asked or self.is_ready:
            return NEVER
        return min(self._size // 2, _WORTH_IT) if self.grows(segment) else self._size // 2

    def order(self) -> None:
        """Schedule the next spare."""
        if self.ask is not None:
            self._asked = True
            self.ask()

    def prepare(self) -> None:
        """Create and zero a spare. A disk error only costs speed."""
        spare: Spare | None = None
        try:
            spare = Spare.create(self._disk, self._folder)
            for _ in spare.fill(self._disk, self._size):
                if self._closed:
                    return
            with self._lock:
                if not self._closed:
                    self._ready, spare = spare, None
            self.on_ready()
        except OSError as error:
            self._events.emit("journal_spare_failed", folder=str(self._folder), error=str(error))
        finally:
            self._asked = False
            if spare is not None:
                spare.discard(self._disk)

    def into_segment(self, header: SegmentHeader) -> SegmentFile:
        """Turn the spare, or an empty file, into a segment; an error changes nothing."""
        if self._ready is not None:
            segment = self._ready.become(self._disk, self._folder, header)
            self._ready = None
            return segment
        fresh = Spare.create(self._disk, self._folder)
        try:
            return fresh.become(self._disk, self._folder, header)
        except BaseException:
            fresh.discard(self._disk)
            raise

    def close(self) -> None:
        """Remove the spare and prepare no more."""
        with self._lock:
            self._closed = True
            if self._ready is not None:
                self._ready.discard(self._disk)
                self._ready = None
