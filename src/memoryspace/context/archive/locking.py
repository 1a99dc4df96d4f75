"""A file lock for processes and threads.

The operating system holds the lock and releases it when its process ends, also by a crash. On NFS
it depends on the server; keep the folder on a local disk.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_TRIES = 100


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file, which is created if missing, for the time of a block."""
    fd = _acquired(path)
    try:
        yield
    finally:
        _unlock(fd)  # explicitly: a forked child may hold a copy of the descriptor
        os.close(fd)


def _acquired(path: Path) -> int:
    for _ in range(_TRIES):
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        fd = os.open(path, flags, 0o666)
        try:
            _lock(fd)
            if _is_at(path, fd):
                return fd
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)  # removed between opening and locking: try the new file
    raise OSError(f"could not lock {path}: it was replaced {_TRIES} times")


def _is_at(path: Path, fd: int) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False


if sys.platform == "win32":
    import msvcrt

    def _lock(fd: int) -> None:
        os.lseek(fd, 0, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_LOCK, 1)

    def _unlock(fd: int) -> None:
        os.lseek(fd, 0, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)
else:
    import fcntl

    def _lock(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_EX)

    def _unlock(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_UN)
