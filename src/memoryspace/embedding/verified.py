"""Verification of known files by size and checksum before they are read."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import NamedTuple

from ..errors import CorruptData


class KnownFile(NamedTuple):
    """The expected size and checksum of a file."""

    size: int
    sha256: str


def verify(path: Path, known: KnownFile) -> None:
    """Raise ``CorruptData`` unless a file is the expected one. It is read once per process."""
    status = path.stat()
    if status.st_size != known.size:
        raise CorruptData(
            f"{path} has {status.st_size:,} bytes, not {known.size:,}: it is truncated or of "
            "another version; reinstall the pinned version"
        )
    found = _checksum(path, status.st_size, status.st_mtime_ns)
    if found != known.sha256:
        raise CorruptData(
            f"{path} has the SHA-256 {found}, not {known.sha256}: it was changed or is of another "
            "version; reinstall the pinned version"
        )


@cache
def _checksum(path: Path, size: int, changed: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
