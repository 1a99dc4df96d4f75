"""Files made ready in the background to become the next segment.

Writing into a file that already has its length lets a sync skip the metadata, which makes it
cheaper by a third. Zeroing takes long, so no writer ever does it: he takes the spare if it is ready
and a file that grows if not, and leaves that one as soon as a spare is there.
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
from .frames import HEADER_BYTES, Header
from .segments import Segment

NEVER = sys.maxsize
_STEP_BYTES = 1024 * 1024
_WORTH_IT = 64 * 1024  # a log that stays smaller than this needs no spare


class Spare:
    """A file with zeros in it, not yet part of the log."""

    __slots__ = ("fd", "path", "size")

    def __init__(self, path: Path, fd: int) -> None:
        self.path = path
        self.fd = fd
        self.size = 0

    @classmethod
    def create(cls, disk: Disk, folder: Path) -> Spare:
        """Make an empty one."""
        path = folder / f"{secrets.token_hex(8)}{SPARE}"
        return cls(path, disk.open(path, create=True))

    def fill(self, disk: Disk, size: int) -> Iterator[None]:
        """Write zeros up to ``size``, durably, step by step: no sync has much to write at once."""
        zeros = bytes(min(size, _STEP_BYTES))
        while self.size < size:
            step = memoryview(zeros)[: size - self.size]
            disk.pwrite(self.fd, step, self.size)
            disk.fdatasync(self.fd)
            self.size += len(step)
            yield

    def become(self, disk: Disk, folder: Path, header: Header) -> Segment:
        """Turn into the empty segment with this header. If it fails, this is still a spare."""
        disk.pwrite(self.fd, header.encoded(), 0)
        return self.enter(disk, folder, header, end=HEADER_BYTES)

    def enter(self, disk: Disk, folder: Path, header: Header, *, end: int) -> Segment:
        """Take the name of a segment that was written already, up to ``end``."""
        path = segment_path(folder, header.first_lsn)
        disk.replace(self.path, path)
        return Segment(path, header, fd=self.fd, end=end, size=self.size)

    def discard(self, disk: Disk) -> None:
        """Remove it, as far as the disk lets us; what stays is removed at the next opening."""
        with suppress(OSError):
            disk.close(self.fd)
        with suppress(OSError):
            disk.unlink(self.path)


class Spares:
    """Has at most one spare. ``ask`` is how it gets ``prepare`` run in the background."""

    def __init__(self, disk: Disk, folder: Path, size: int, events: EventStream) -> None:
        self._disk, self._folder, self._size, self._events = disk, folder, size, events
        self._lock = threading.Lock()
        self._ready: Spare | None = None
        self._asked = False
        self._closed = False
        self.ask: Callable[[], None] | None = None  # None: never prepare any
        self.on_ready: Callable[[], None] = lambda: None

    @property
    def is_ready(self) -> bool:
        """Whether the next segment is waiting."""
        return self._ready is not None

    def grows(self, segment: Segment) -> bool:
        """Whether a segment's file is not zeroed ahead."""
        return segment.size < self._size

    def due_at(self, segment: Segment) -> int:
        """Return the offset from which on ``order`` should be called, early if the file grows."""
        if self.ask is None or self._asked or self.is_ready:
            return NEVER
        return min(self._size // 2, _WORTH_IT) if self.grows(segment) else self._size // 2

    def order(self) -> None:
        """Have the next spare prepared."""
        if self.ask is not None:
            self._asked = True
            self.ask()

    def prepare(self) -> None:
        """Zero a file. A disk that refuses costs speed, nothing else."""
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

    def into_segment(self, header: Header) -> Segment:
        """Turn the spare, or an empty file, into a segment; a failure leaves all as it was."""
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
        """Remove the spare, and let none come."""
        with self._lock:
            self._closed = True
            if self._ready is not None:
                self._ready.discard(self._disk)
                self._ready = None
