"""A disk that fails when told to, and that remembers what a power cut would leave.

Nothing is ever really synced: a successful sync takes a copy of what would now be safe. After a
failed sync the bytes that were to be written count as lost for good, though reads still show them
and later syncs of the same file succeed. That is how real systems behave.
"""

from __future__ import annotations

import errno
import os
import threading
from collections import Counter
from pathlib import Path

from memoryspace.kernel.durable.disk import Disk

SYNCS = ("fdatasync", "fsync")


class _File:
    """What is on the medium of one file, and what the system wrongly believes to be there."""

    def __init__(self, safe: bytes) -> None:
        self.safe = safe
        self.dropped: dict[int, int] = {}

    def sync(self, now: bytes) -> None:
        safe = bytearray(now)
        for offset, byte in self.dropped.items():
            if offset < len(safe) and safe[offset] == byte:
                safe[offset] = self.safe[offset] if offset < len(self.safe) else 0
            # a byte that was written again since is dirty again, and safe from now on
        self.safe = bytes(safe)

    def fail(self, now: bytes) -> None:
        old = self.safe.ljust(len(now), b"\0")
        self.dropped |= {at: now[at] for at in range(len(now)) if now[at] != old[at]}


class FaultyDisk(Disk):
    """``fail("pwrite", 3)`` lets the third next write fail; ``calls`` counts them by kind."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self.synced = threading.Event()  # set by every successful fdatasync
        self._faults: dict[str, tuple[range, int]] = {}
        self._lock = threading.RLock()
        self._files: dict[Path, _File] = {}
        self._open: dict[int, tuple[_File, Path]] = {}
        self._names: dict[Path, dict[Path, _File]] = {}

    def fail(self, kind: str, nth: int = 1, *, times: int = 1, error: int = errno.EIO) -> None:
        with self._lock:
            first = self.calls[kind] + nth
            self._faults[kind] = (range(first, first + times), error)

    def heal(self) -> None:
        with self._lock:
            self._faults.clear()

    def power_cut(self, folder: Path, target: Path) -> None:
        """Lay out in ``target`` what of ``folder`` is on the medium."""
        with self._lock:
            target.mkdir()
            for path, file in self._names.get(folder, {}).items():
                (target / path.name).write_bytes(file.safe)

    def open(self, path: Path, *, create: bool = False) -> int:
        with self._lock:
            self._count("open")
            file = _File(b"") if create else self._known(path)
            fd = super().open(path, create=create)
            self._files[path] = file
            self._open[fd] = (file, path)
            return fd

    def close(self, fd: int) -> None:
        with self._lock:
            self._open.pop(fd)
            super().close(fd)
            self._count("close")

    def pwrite(self, fd: int, data: bytes | memoryview, offset: int) -> None:
        try:
            self._count("pwrite")
        except OSError:
            super().pwrite(fd, data[: len(data) // 2], offset)  # a disk may stop anywhere
            raise
        super().pwrite(fd, data, offset)

    def read(self, path: Path, size: int = -1) -> bytes:
        self._count("read")
        return super().read(path, size)

    def fdatasync(self, fd: int) -> None:
        self._sync("fdatasync", fd)
        self.synced.set()

    def fsync(self, fd: int) -> None:
        self._sync("fsync", fd)

    def sync_folder(self, folder: Path) -> None:
        with self._lock:
            self._count("sync_folder")
            inside = [folder / name for name in os.listdir(folder)]
            self._names[folder] = {path: self._known(path) for path in inside if path.is_file()}

    def replace(self, old: Path, new: Path) -> None:
        with self._lock:
            self._count("replace")
            super().replace(old, new)
            self._files[new] = self._files.pop(old)

    def mkdir(self, folder: Path) -> None:
        self._count("mkdir")
        super().mkdir(folder)

    def unlink(self, path: Path) -> None:
        with self._lock:
            self._count("unlink")
            super().unlink(path)
            self._files.pop(path, None)

    def listdir(self, folder: Path) -> list[str]:
        self._count("listdir")
        return super().listdir(folder)

    def truncate(self, fd: int, size: int) -> None:
        self._count("truncate")
        super().truncate(fd, size)

    def _count(self, kind: str) -> None:
        with self._lock:
            self.calls[kind] += 1
            when, error = self._faults.get(kind, (range(0), 0))
            if self.calls[kind] in when:
                self.failed[kind] += 1
                raise OSError(error, os.strerror(error))

    def _sync(self, kind: str, fd: int) -> None:
        with self._lock:
            file, _ = self._open[fd]
            now = os.pread(fd, os.fstat(fd).st_size, 0)
            try:
                self._count(kind)
            except OSError:
                file.fail(now)
                raise
            file.sync(now)

    def _known(self, path: Path) -> _File:
        """A file made by someone else counts as safe."""
        if path not in self._files:
            self._files[path] = _File(path.read_bytes())
        return self._files[path]
