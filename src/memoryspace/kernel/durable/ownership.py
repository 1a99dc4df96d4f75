"""``FolderLock``: exclusive ownership of a folder by one process.

The operating system holds the lock, not the file: it ends with ``close`` and with the death of the
owner, and a stale lock file does no harm. On NFS such locks depend on the server and its lock
service; keep the folder on a local disk if two machines could open it.
"""

from __future__ import annotations

import errno
import os
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from ...errors import StoreError, StoreUnavailable
from ...lifecycle import ClosingNow

LOCK_FILE = "LOCK"

_TRIES = 100
_MAX_NOTE = 4096  # bytes of a lock file that are read
_HELD = {errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES, errno.EDEADLK}


class Owner(Struct, frozen=True):
    """The owner of a folder, as recorded in its lock file."""

    pid: int
    host: str
    started: float
    program: str

    def __str__(self) -> str:
        since = datetime.fromtimestamp(self.started, UTC).isoformat(sep=" ", timespec="seconds")
        return f"{self.program!r}, process {self.pid} on {self.host}, since {since}"


class FolderInUse(StoreError):
    """Another process owns the folder: ``owner``, or ``None`` if its lock file is unreadable."""

    def __init__(self, folder: Path, owner: Owner | None) -> None:
        who = "another process" if owner is None else str(owner)
        super().__init__(
            f"the folder {folder} is in use by {who}; close it there, stop that process, "
            "or choose another folder; to share a memory between processes, keep it in a database "
            "(sqlite:///…, postgresql://…, redis://…)"
        )
        self.folder = folder
        self.owner = owner


class FolderLock(ClosingNow):
    """Owns a folder until ``close``.

    A forked child does not own what its parent owns: there, ``owned`` is ``False``.

    Args:
        folder: The folder to own; it is created if need be.
        clock: Returns the time to record in the lock file.

    Raises:
        FolderInUse: Another process owns the folder.
        StoreUnavailable: The lock file cannot be created or locked.
    """

    def __init__(
        self, folder: str | os.PathLike[str], *, clock: Callable[[], float] = time.time
    ) -> None:
        self.folder = Path(folder).absolute()
        self.path = self.folder / LOCK_FILE
        self._fd: int | None = None
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._fd = self._acquire()
            self._sign(self._fd, clock())
        except OSError as error:
            self.close()
            raise StoreUnavailable(
                f"{self.path} cannot be locked: {error.strerror}; "
                f"choose a folder on a local disk that is writable"
            ) from error
        _owned.add(self)

    @property
    def owned(self) -> bool:
        """Whether this process owns the folder through this lock."""
        return self._fd is not None

    def check(self) -> None:
        """Raise ``StoreError`` unless the folder and its lock file are still ours."""
        if self._fd is None:
            raise StoreError(f"this process does not own {self.folder}; open it again")
        if not self._is_file_of(self._fd):
            raise StoreError(
                f"{self.path} was removed or replaced, so another process may use the folder too; "
                f"stop all of them, and never delete that file"
            )

    def close(self) -> None:
        """Release the folder. May be called more than once. The lock file stays.

        Removing it would allow two owners: one that waits on the old file, and one with a new one.
        """
        fd, self._fd = self._fd, None
        _owned.discard(self)
        if fd is not None:
            os.close(fd)  # releases the lock: no other process has a copy of this descriptor

    def __repr__(self) -> str:
        return f"<FolderLock {self.folder} ({'owned' if self.owned else 'not owned'})>"

    def _acquire(self) -> int:
        """Return a locked descriptor of the current lock file."""
        for _ in range(_TRIES):
            # Never through a link: its target would be overwritten.
            flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
            fd = os.open(self.path, flags, 0o666)
            try:
                if not _try_lock(fd):
                    raise FolderInUse(self.folder, _read_note(fd))
                if self._is_file_of(fd):
                    return fd
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)  # removed between opening and locking: try the new one
        raise OSError(errno.EAGAIN, "the lock file is replaced repeatedly")

    def _is_file_of(self, fd: int) -> bool:
        try:
            return os.path.samestat(os.fstat(fd), os.stat(self.path, follow_symlinks=False))
        except FileNotFoundError:
            return False

    def _sign(self, fd: int, now: float) -> None:
        program = Path(sys.argv[0]).name if sys.argv and sys.argv[0] else sys.executable
        owner = Owner(os.getpid(), socket.gethostname(), now, program)
        note = msgspec.json.encode(owner)
        os.ftruncate(fd, 0)
        os.lseek(fd, 0, os.SEEK_SET)
        os.write(fd, note + b"\n")


def _read_note(fd: int) -> Owner | None:
    """Return the owner recorded in a lock file, or ``None`` if it cannot be read."""
    with suppress(OSError, ValueError, OverflowError, msgspec.DecodeError):
        os.lseek(fd, 0, os.SEEK_SET)
        owner = msgspec.json.decode(os.read(fd, _MAX_NOTE), type=Owner)
        str(owner)  # refuses a date that cannot be shown
        return owner
    return None


# Locks of this process. A forked child inherits their descriptors, which would keep a folder locked
# after the parent's death, so the child closes its copies. The parent's lock is not affected.
_owned: set[FolderLock] = set()


def _forget_after_fork() -> None:
    for lock in list(_owned):
        lock.close()


if sys.platform == "win32":
    import msvcrt

    _FAR = 2**30  # locked bytes cannot be read on Windows, so they are far from the note

    def _try_lock(fd: int) -> bool:
        os.lseek(fd, _FAR, os.SEEK_SET)
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            if error.errno in _HELD:
                return False
            raise
        return True
else:
    import fcntl

    os.register_at_fork(after_in_child=_forget_after_fork)

    def _try_lock(fd: int) -> bool:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in _HELD:
                return False
            raise
        return True
