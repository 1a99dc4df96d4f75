"""``Disk``: the file system calls of the kernel, in one place.

Everything durable goes through a ``Disk``, so tests can make any call fail. Errors are the
system's own ``OSError``; callers translate them.
"""

from __future__ import annotations

import os
from pathlib import Path

# Syncs data without needless metadata, where the system supports that.
_fdatasync = getattr(os, "fdatasync", os.fsync)


class Disk:
    """Files of the operating system. Stateless, so one instance can be shared."""

    def open(self, path: Path, *, create: bool = False) -> int:
        """Open a file for reading and writing; with ``create``, create or empty it."""
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC if create else os.O_RDWR
        return os.open(path, flags, 0o666)

    def close(self, fd: int) -> None:
        """Close a file. It is not synced."""
        os.close(fd)

    def pwrite(self, fd: int, data: bytes | memoryview, offset: int) -> None:
        """Write all of ``data`` at ``offset``; a short write is continued."""
        written = os.pwrite(fd, data, offset)
        while written < len(data):
            written += os.pwrite(fd, memoryview(data)[written:], offset + written)

    def read(self, path: Path, size: int = -1) -> bytes:
        """Return the first ``size`` bytes of a file, or all of it."""
        with open(path, "rb") as file:
            return file.read(size)

    def fdatasync(self, fd: int) -> None:
        """Return once the file's data, and its length, are on the medium."""
        _fdatasync(fd)

    def fsync(self, fd: int) -> None:
        """Return once the file and all its metadata are on the medium."""
        os.fsync(fd)

    def sync_folder(self, folder: Path) -> None:
        """Return once the names in a folder are on the medium."""
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def replace(self, old: Path, new: Path) -> None:
        """Rename a file atomically, replacing any file of the new name."""
        os.replace(old, new)

    def mkdir(self, folder: Path) -> None:
        """Create a folder and its parents; an existing one stays as it is."""
        folder.mkdir(parents=True, exist_ok=True)

    def unlink(self, path: Path) -> None:
        """Remove a file; a missing one is not an error."""
        path.unlink(missing_ok=True)

    def listdir(self, folder: Path) -> list[str]:
        """Return the names in a folder, sorted."""
        return sorted(os.listdir(folder))

    def size(self, path: Path) -> int:
        """Return a file's length in bytes."""
        return os.stat(path).st_size

    def truncate(self, fd: int, size: int) -> None:
        """Truncate a file to a length."""
        os.ftruncate(fd, size)
