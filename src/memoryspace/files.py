"""Files that are either the old ones or the new ones, never half of each; and a bounded folder.

``write_atomic`` survives a crash at any point. ``FileMap`` is a mapping of names to bytes with one
file a name, limits in number and bytes, and the oldest written file going first.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import threading
from collections.abc import Iterator, MutableMapping
from contextlib import suppress
from pathlib import Path

from .errors import InvalidInput

MAX_NAME = 200  # characters; a suffix still fits into what file systems allow

# Names of this form are their own file names: visible, and no two differ by case alone.
_PLAIN_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
_SAFE_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9@~._-]{{0,{MAX_NAME - 1}}}")
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_TEMPORARY = ".tmp"


def write_atomic(path: Path, data: bytes) -> None:
    """Write a file so that a reader, or a crash, sees the whole old or the whole new one."""
    temporary = path.with_name(f".{path.name[:40]}.{secrets.token_hex(8)}{_TEMPORARY}")
    try:
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def safe_name(*parts: str) -> str:
    """Return a file name for these ids: readable, inside its folder, and never another's.

    Plain lower-case ids are joined by ``@``. Anything else is shown as far as it is safe and told
    apart by a hash of the exact ids.
    """
    joined = "@".join(parts)
    if all(_PLAIN_NAME.fullmatch(part) for part in parts) and len(joined) <= MAX_NAME:
        return joined
    exact = "".join(f"{len(part)}:{part}" for part in parts)
    digest = hashlib.sha256(exact.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    shown = "@".join(_UNSAFE.sub("-", part).strip("._-")[:40] or "x" for part in parts)
    return f"{shown[: MAX_NAME - len(digest) - 1]}~{digest}"


class FileMap(MutableMapping[str, bytes]):
    """A folder of files as a mapping. Values are written atomically.

    Over a limit, the files written longest ago go first, the new one too if it alone is too big.
    The folder is listed when opened and again after as many writes as it holds files, so other
    processes may use it at the same time and the cost of a write does not grow with the folder.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        suffix: str = "",
        max_files: int | None = None,
        max_bytes: int | None = None,
    ) -> None:
        for name, limit in (("max_files", max_files), ("max_bytes", max_bytes)):
            if limit is not None and limit < 0:
                raise InvalidInput(f"{name} must be 0 or more, got {limit}")
        self.folder = Path(folder).absolute()
        self.suffix = suffix
        self.max_files = max_files
        self.max_bytes = max_bytes
        self._lock = threading.Lock()
        self._refresh()

    @property
    def bytes_used(self) -> int:
        """The size of all files as far as this object knows."""
        return self._bytes_used

    def __getitem__(self, name: str) -> bytes:
        try:
            return self._path(name).read_bytes()
        except FileNotFoundError:
            raise KeyError(name) from None

    def __setitem__(self, name: str, data: bytes) -> None:
        path = self._path(name)
        self.folder.mkdir(parents=True, exist_ok=True)
        write_atomic(path, data)
        with self._lock:
            self._note(path.name, len(data))
            self._writes_until_refresh -= 1
            if self._writes_until_refresh <= 0:
                self._refresh()
            self._shrink()

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
        if not _SAFE_NAME.fullmatch(name):
            raise InvalidInput(f"{name!r} is no safe file name; pass it through safe_name() first")
        return self.folder / (name + self.suffix)

    def _list(self) -> dict[str, int]:
        """Return file name → size, oldest written first."""
        found: list[tuple[int, str, int]] = []
        with suppress(FileNotFoundError), os.scandir(self.folder) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):  # another process may remove it just now
                    if self._is_ours(entry):
                        stat = entry.stat()
                        found.append((stat.st_mtime_ns, entry.name, stat.st_size))
        return {name: size for _, name, size in sorted(found)}

    def _is_ours(self, entry: os.DirEntry[str]) -> bool:
        stem = entry.name.removesuffix(self.suffix)
        has_suffix = len(stem) + len(self.suffix) == len(entry.name)
        return has_suffix and bool(_SAFE_NAME.fullmatch(stem)) and entry.is_file()

    def _refresh(self) -> None:
        self._sizes = self._list()
        self._bytes_used = sum(self._sizes.values())
        self._writes_until_refresh = max(64, len(self._sizes))

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
                (self.folder / oldest).unlink()

    def _over_limit(self) -> bool:
        too_many = self.max_files is not None and len(self._sizes) > self.max_files
        too_big = self.max_bytes is not None and self._bytes_used > self.max_bytes
        return too_many or too_big


def _sync_folder(folder: Path) -> None:
    """Make a rename in a folder outlive a power cut (a no-op where folders cannot be opened)."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
