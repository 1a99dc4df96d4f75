"""Atomic file writes, safe file names, and a bounded folder of files.

``write_atomic`` survives a crash at any point: a reader sees the old file or the new one, never
half of each. ``FileMap`` maps names to bytes, one file per name, with limits on the number of files
and bytes; over a limit it removes the oldest written file first.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import threading
import time
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import BinaryIO

from .errors import InvalidInput

MAX_NAME = 200  # characters; leaves space for a suffix within file system limits

# Names of this form are used as file names unchanged: not hidden, and no two differ only in case.
_PLAIN_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
_SAFE_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9@~._-]{{0,{MAX_NAME - 1}}}")
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_TEMPORARY = ".tmp"
_HALF_DONE = re.compile(r"\..{1,40}\.[0-9a-f]{16}\.tmp")
_FEW = 64  # writes; listing the folder more often is not worth it
_LARGE = 1 << 20  # bytes; copying more would block noticeably
_HAS_NOWAIT = hasattr(os, "preadv") and hasattr(os, "RWF_NOWAIT")
_LONGEST_WRITE = 3600.0  # seconds; an older temporary file was abandoned


def write_atomic(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Replace a file atomically: readers see the complete old or the complete new content.

    With ``durable=True`` the new content has reached the disk on return. With ``durable=False``
    nothing is synced: the promise holds if the process crashes, but after a power cut the file may
    be missing or truncated.
    """
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name[:40]}.{secrets.token_hex(8)}{_TEMPORARY}")
    try:
        with open(temporary, "xb", buffering=0) as file:
            _write_all(file, data)
            if durable:
                os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    if durable:
        sync_folder(path.parent)


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Replace a file with what the block writes: atomically, durably, and only if it succeeds."""
    temporary = path.parent / f".{path.name[:40]}.{secrets.token_hex(8)}{_TEMPORARY}"
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def read_at_hand(path: str) -> bytes | None:
    """Return a file's content if it is in the page cache, or None if reading would block.

    Also returns None for folders, pipes, unreadable files, and on systems that cannot read without
    blocking.

    Raises:
        FileNotFoundError: If there is no such file.
    """
    if not _HAS_NOWAIT:
        return None
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        raise
    except OSError:
        return None
    try:
        size = os.fstat(descriptor).st_size
        if size > _LARGE:
            return None
        data = bytearray(size)
        return bytes(data) if os.preadv(descriptor, [data], 0, os.RWF_NOWAIT) == size else None
    except OSError:  # not cached, or not supported by the file system
        return None
    finally:
        os.close(descriptor)


def safe_name(*parts: str) -> str:
    """Return a file name for these ids: readable, free of path separators, and unique to them.

    Plain lower-case ids are joined by ``@``. Other ids are shortened to their safe characters and
    distinguished by a hash of the exact ids.
    """
    joined = "@".join(parts)
    if all(_PLAIN_NAME.fullmatch(part) for part in parts) and len(joined) <= MAX_NAME:
        return joined
    exact = "".join(f"{len(part)}:{part}" for part in parts)
    digest = hashlib.sha256(exact.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    shown = "@".join(_UNSAFE.sub("-", part).strip("._-")[:40] or "x" for part in parts)
    return f"{shown[: MAX_NAME - len(digest) - 1]}~{digest}"


class FileMap(MutableMapping[str, bytes]):
    """A folder of files as a mapping from names to bytes. Values are written atomically.

    Over a limit, the files written longest ago are removed first; a new file that alone exceeds the
    limit is removed too. The folder is listed on opening and again after as many writes as it holds
    files, or after an eighth of that if another process writes to it. So the cost of a write does
    not grow with the folder, and each of several processes may exceed the limit by that eighth for
    a while. Temporary files of a killed writer are removed after an hour.

    Args:
        folder: Where the files are. It is created on the first write.
        suffix: Appended to each name to make the file name.
        max_files: The largest number of files, or None for no limit.
        max_bytes: The largest total size, or None for no limit.
        durable: Whether to sync each write; see ``write_atomic``.

    Raises:
        InvalidInput: If a limit is negative, or a name is not a safe file name.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        suffix: str = "",
        max_files: int | None = None,
        max_bytes: int | None = None,
        durable: bool = True,
    ) -> None:
        for name, limit in (("max_files", max_files), ("max_bytes", max_bytes)):
            if limit is not None and limit < 0:
                raise InvalidInput(f"{name} must be 0 or more, got {limit}")
        self.folder = Path(folder).absolute()
        self.suffix = suffix
        self.max_files = max_files
        self.max_bytes = max_bytes
        self._durable = durable
        self._lock = threading.Lock()
        self._sizes: dict[str, int] = {}
        self._refresh()

    def __repr__(self) -> str:
        return f"FileMap({str(self.folder)!r}, bytes_used={self.bytes_used})"

    @property
    def bytes_used(self) -> int:
        """The total size of the files, as last listed or written here."""
        return self._bytes_used

    def __getitem__(self, name: str) -> bytes:
        try:
            return self._path(name).read_bytes()
        except FileNotFoundError:
            raise KeyError(name) from None

    def at_hand(self, name: str) -> bytes | None:
        """Return a value without blocking on the disk, or None if reading would block.

        Raises:
            KeyError: If there is no such name.
        """
        try:
            return read_at_hand(f"{self.folder}{os.sep}{self._checked(name)}{self.suffix}")
        except FileNotFoundError:
            raise KeyError(name) from None

    def __setitem__(self, name: str, data: bytes) -> None:
        path = self._path(name)
        with self._lock:
            self._detect_other_writers()
        try:
            write_atomic(path, data, durable=self._durable)
        except FileNotFoundError:  # the first write, or the folder was removed
            self.folder.mkdir(parents=True, exist_ok=True)
            write_atomic(path, data, durable=self._durable)
        with self._lock:
            self._note(path.name, len(data))
            self._writes += 1
            if self._writes >= self._most_writes:
                self._refresh()
            self._shrink()
            self._changed = self._change_time()

    def __delitem__(self, name: str) -> None:
        path = self._path(name)
        with self._lock:
            self._forget(path.name)
        try:
            path.unlink()
        except FileNotFoundError:
            raise KeyError(name) from None

    def __contains__(self, name: object) -> bool:
        is_name = isinstance(name, str) and _SAFE_NAME.fullmatch(name)
        return bool(is_name) and self._path(str(name)).is_file()

    def __iter__(self) -> Iterator[str]:
        cut = len(self.suffix)
        return (file[: len(file) - cut] for file in self._list())

    def __len__(self) -> int:
        return len(self._list())

    def _path(self, name: str) -> Path:
        return self.folder / (self._checked(name) + self.suffix)

    def _checked(self, name: str) -> str:
        if not _SAFE_NAME.fullmatch(name):
            raise InvalidInput(f"{name!r} is not a safe file name; pass it to safe_name() first")
        return name

    def _list(self) -> dict[str, int]:
        """Return a mapping of file name to size, oldest written first.

        File systems record times in steps of some milliseconds. Files written within one step keep
        the order in which this object wrote them.
        """
        known = {name: place for place, name in enumerate(list(self._sizes))}
        found: list[tuple[int, int, str, int]] = []
        with suppress(FileNotFoundError), os.scandir(self.folder) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):  # another process may remove it meanwhile
                    place = known.get(entry.name, -1)
                    if (place >= 0 or self._is_ours(entry.name)) and entry.is_file():
                        stat = entry.stat()
                        found.append((stat.st_mtime_ns, place, entry.name, stat.st_size))
                    elif _HALF_DONE.fullmatch(entry.name):
                        _sweep(entry)
        return {name: size for _, _, name, size in sorted(found)}

    def _is_ours(self, file: str) -> bool:
        stem = file.removesuffix(self.suffix)
        has_suffix = len(stem) + len(self.suffix) == len(file)
        return has_suffix and bool(_SAFE_NAME.fullmatch(stem))

    def _refresh(self) -> None:
        self._sizes = self._list()
        self._bytes_used = sum(self._sizes.values())
        self._writes = 0
        self._most_writes = max(_FEW, len(self._sizes))
        self._changed = self._change_time()

    def _detect_other_writers(self) -> None:
        """List the folder more often if another process has changed it since our last write.

        A change within the same step of the file system's clock is missed; the next one is not.
        """
        if self._change_time() != self._changed:
            self._most_writes = max(_FEW, len(self._sizes) // 8)

    def _change_time(self) -> int:
        try:
            return os.stat(self.folder).st_mtime_ns
        except FileNotFoundError:
            return 0

    def _note(self, file: str, size: int) -> None:
        self._forget(file)
        self._sizes[file] = size
        self._bytes_used += size

    def _forget(self, file: str) -> None:
        self._bytes_used -= self._sizes.pop(file, 0)

    def _shrink(self) -> None:
        while self._sizes and self._over_limit():
            oldest = next(iter(self._sizes))
            self._forget(oldest)
            with suppress(FileNotFoundError):
                os.unlink(os.path.join(self.folder, oldest))

    def _over_limit(self) -> bool:
        too_many = self.max_files is not None and len(self._sizes) > self.max_files
        too_big = self.max_bytes is not None and self._bytes_used > self.max_bytes
        return too_many or too_big


def _sweep(entry: os.DirEntry[str]) -> None:
    """Remove a temporary file that a killed writer left behind."""
    if entry.is_file() and time.time() - entry.stat().st_mtime > _LONGEST_WRITE:
        with suppress(OSError):
            os.unlink(entry.path)


def _write_all(file: FileIO, data: bytes) -> None:
    """Write all of ``data``; one raw write may take only a part."""
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


def sync_folder(folder: Path) -> None:
    """Make a rename survive a power cut (a no-op where folders cannot be opened)."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
