"""The few system calls the kernel makes on files, behind one seam.

Everything durable goes through a ``Disk``, so a test can let any call of any kind fail. Errors are
the system's own ``OSError``; callers say what they mean.
"""

from __future__ import annotations

import os
from pathlib import Path

# Data without needless metadata where the system knows the difference.
_fdatasync = getattr(os, "fdatasync", os.fsync)


class Disk:
    """Files of the operating system. Holds no state: one serves any number of users."""

    def open(self, path: Path, *, create: bool = False) -> int:
        """Open a file for reading and writing; with ``create``, made anew and empty."""
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC if create else os.O_RDWR
        return os.open(path, flags, 0o666)

    def close(self, fd: int) -> None:
        """Close a file. Says nothing about durability."""
        os.close(fd)

    def pwrite(self, fd: int, data: bytes | memoryview, offset: int) -> None:
        """Write all of ``data`` at ``offset``; a short write goes on where it stopped."""
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
        """Give a file its new name at once; what had that name is gone."""
        os.replace(old, new)

    def mkdir(self, folder: Path) -> None:
        """Make a folder and its parents; one that is there is left as it is."""
        folder.mkdir(parents=True, exist_ok=True)

    def unlink(self, path: Path) -> None:
        """Remove a file; one that is gone already is no error."""
        path.unlink(missing_ok=True)

    def listdir(self, folder: Path) -> list[str]:
        """Return the names in a folder, sorted."""
        return sorted(os.listdir(folder))

    def size(self, path: Path) -> int:
        """Return a file's length in bytes."""
        return os.stat(path).st_size

    def truncate(self, fd: int, size: int) -> None:
        """Cut a file to a length."""
        os.ftruncate(fd, size)
