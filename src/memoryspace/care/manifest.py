"""The manifest of a backup: what it holds, file by file, with sizes and checksums.

    manifest.json             written last, whole or not at all: what it does not list is no backup
    lines/<number>/…          files that are never changed once they are listed
    erasures/<ledger>.log     what was erased since; see ``ErasureLedger``
    LOCK                      one backup at a time

A *line* holds every moment between two (a space), or a single one (a SQLite database). Whatever a
manifest says is checked before it is used: names, sizes and checksums, in this order.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path, PurePath
from typing import Literal

import msgspec
from msgspec import Struct

from ..errors import InvalidInput, StoreUnavailable
from ..files import write_atomic
from ..kernel.durable.lines import Span
from .errors import BackupDamaged, BackupTooNew

FORMAT = 1
MANIFEST = "manifest.json"
LINES = "lines"

Progress = Callable[[str, int, int], None]  # what is done, how much of it, of how much

_MOST = 64 << 20  # bytes of a manifest
_PART = 1 << 20  # bytes read at once
_NAME = re.compile(r"base/\d{20}\.image|journal/\d{20}\.log|database\.sqlite")
_LINE = re.compile(r"\d{6}")


class FileNote(Struct, frozen=True):
    """The size of a file in bytes, and its SHA-256."""

    size: int
    sha256: str


class Line(Struct, frozen=True):
    """Some moments that can be restored, and the files that hold them.

    Attributes:
        name: The folder in ``lines``.
        kind: What it was made from: a memory ``"space"``, or a ``"sqlite"`` database.
        span: From when to when it goes.
        files: Its files, by their path in the folder.
    """

    name: str
    kind: Literal["space", "sqlite"]
    span: Span
    files: dict[str, FileNote]

    @property
    def size(self) -> int:
        """How many bytes its files have."""
        return sum(each.size for each in self.files.values())


class Manifest(Struct, frozen=True):
    """What a backup holds. ``lines`` are in the order in which they were made."""

    made_by: str
    lines: tuple[Line, ...] = ()


class _Frame(Struct, frozen=True):
    memoryspace: str
    format: int
    sha256: str
    holds: msgspec.Raw


def read_manifest(folder: str | os.PathLike[str]) -> Manifest:
    """Return the manifest of a backup.

    Raises:
        InvalidInput: There is no such folder.
        BackupDamaged: The manifest is missing or altered.
        BackupTooNew: The backup has a format of a later version.
    """
    path = Path(folder) / MANIFEST
    if not path.parent.is_dir():
        raise InvalidInput(f"there is no backup in {path.parent}: it is not a folder")
    try:
        data = _read_file(path, _MOST)
    except FileNotFoundError:
        raise BackupDamaged(
            f"{path.parent} holds no finished backup: {MANIFEST} is missing; "
            "choose another folder, or back up again"
        ) from None
    return _checked(data, path)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Replace the manifest of a backup; from then on, what it lists counts."""
    holds = msgspec.json.encode(manifest)
    frame = _Frame("backup", FORMAT, sha256(holds).hexdigest(), msgspec.Raw(holds))
    write_atomic(folder / MANIFEST, msgspec.json.encode(frame))


def note_files(line: Path, known: dict[str, FileNote]) -> dict[str, FileNote]:
    """Return notes of every file of a line; those that are known already are not read again."""
    names = [path.relative_to(line).as_posix() for path in sorted(line.glob("**/*"))]
    ours = [name for name in names if _NAME.fullmatch(name)]
    return {name: known[name] if name in known else _noted(line / name) for name in ours}


def is_listed(line: Line, path: PurePath) -> bool:
    """Return whether a line has this file."""
    return path.as_posix() in line.files


def verify_line(folder: Path, line: Line, progress: Progress | None = None) -> None:
    """Read every file of a line; ``BackupDamaged`` names the first that is not as it was made."""
    done, size = 0, line.size
    for name, note in line.files.items():
        path = folder / LINES / line.name / name
        try:
            found = _noted(path)
        except FileNotFoundError:
            raise _damaged(path, "it is missing") from None
        except OSError as error:
            raise _damaged(path, f"it cannot be read ({error.strerror})") from error
        if found.size != note.size:
            raise _damaged(path, f"it has {found.size} bytes instead of {note.size}")
        if found != note:
            raise _damaged(path, "its checksum is wrong")
        done += note.size
        if progress is not None:
            progress("verify", done, size)


def _checked(data: bytes, path: Path) -> Manifest:
    try:
        frame = msgspec.json.decode(data, type=_Frame)
        if frame.memoryspace != "backup":
            raise _damaged(path, "it is not the manifest of a backup")
        if frame.format > FORMAT:
            raise BackupTooNew(
                f"the backup in {path.parent} has format {frame.format}, this version of "
                f"memoryspace reads up to {FORMAT}; upgrade memoryspace"
            )
        if sha256(bytes(frame.holds)).hexdigest() != frame.sha256:
            raise _damaged(path, "its checksum is wrong")
        manifest = msgspec.json.decode(bytes(frame.holds), type=Manifest)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise _damaged(path, f"it cannot be decoded ({error})") from None
    for line in manifest.lines:
        _check_names(line, path)
    return manifest


def _check_names(line: Line, path: Path) -> None:
    """Refuse every name that this package does not give: none leads out of the folder."""
    bad = [name for name in line.files if not _NAME.fullmatch(name)]
    if not _LINE.fullmatch(line.name):
        bad.append(line.name)
    if bad:
        raise _damaged(path, f"it lists {bad[0]!r}, which is no name of a file of a backup")
    if any(note.size < 0 for note in line.files.values()):
        raise _damaged(path, "it lists a file with a negative size")


def _noted(path: Path) -> FileNote:
    digest, size = sha256(), 0
    with open(_opened(path), "rb") as file:
        while part := file.read(_PART):
            digest.update(part)
            size += len(part)
    return FileNote(size, digest.hexdigest())


def _read_file(path: Path, most: int) -> bytes:
    try:
        with open(_opened(path), "rb") as file:
            data = file.read(most + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StoreUnavailable(f"{path} cannot be read: {error.strerror}") from error
    if len(data) > most:
        raise _damaged(path, f"it is longer than {most} bytes")
    return data


def _opened(path: Path) -> int:
    """Open a regular file, never through a link, and without waiting for a pipe."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        descriptor = os.open(path, flags | getattr(os, "O_BINARY", 0))
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _damaged(path, "it is a link") from error
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _damaged(path, "it is not a regular file")
    return descriptor


def _damaged(path: Path, what: str) -> BackupDamaged:
    return BackupDamaged(f"the backup is damaged: {path}: {what}; use another backup")
