"""Files that are known: their size and checksum are looked at before they are read."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import NamedTuple

from ..errors import CorruptData


class Known(NamedTuple):
    """What a file must be."""

    size: int
    sha256: str


def verify(path: Path, known: Known) -> None:
    """Raise ``CorruptData`` unless a file is the known one. It is read once in a process."""
    status = path.stat()
    if status.st_size != known.size:
        raise CorruptData(
            f"{path} has {status.st_size:,} bytes, not {known.size:,}: it is of another version or "
            "was cut; install the pinned version anew"
        )
    found = _checksum(path, status.st_size, status.st_mtime_ns)
    if found != known.sha256:
        raise CorruptData(
            f"{path} has the SHA-256 {found}, not {known.sha256}: it was changed or is of another "
            "version; install the pinned version anew"
        )


@cache
def _checksum(path: Path, size: int, changed: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
