"""The folder of a journal: which files are its segments, and which lsns each provides.

A segment is named after its first lsn. If two hold the same lsn, the one with the later name
counts. A rewritten segment (with a higher generation) also supersedes older ones with later names.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace as change

from ....errors import CorruptData, InvalidInput
from ..disk import Disk
from .damage import JournalTooNew
from .frames import HEADER_BYTES, SegmentHeader, decode_header

SPARE = ".spare"
_LOG = ".log"
_NAME = re.compile(rf"(\d{{20}}){re.escape(_LOG)}")
ENDLESS = sys.maxsize


class SegmentRange(Struct, frozen=True):
    """A segment and the lsns it provides: from ``first_lsn`` up to, but excluding, ``bound``."""

    path: Path
    first_lsn: int
    header: SegmentHeader | None  # None: unreadable
    bound: int = ENDLESS
    size: int = -1  # how much of the file to read; -1 is all of it


def segment_path(folder: Path, first_lsn: int) -> Path:
    """Return the path of the segment that begins with this lsn."""
    return folder / f"{first_lsn:020}{_LOG}"


def spare_paths(disk: Disk, folder: Path) -> list[Path]:
    """Return the files that were prepared as segments and never used."""
    return [folder / name for name in disk.listdir(folder) if name.endswith(SPARE)]


def log_paths(disk: Disk, folder: Path) -> list[Path]:
    """Return the files with names of segments."""
    return [folder / name for name in disk.listdir(folder) if _NAME.fullmatch(name)]


def parts_of(disk: Disk, folder: Path) -> tuple[list[SegmentRange], list[Path]]:
    """Return the segments that count, oldest first, and the files that are superseded."""
    kept: list[SegmentRange] = []
    stale: list[Path] = []
    generation = 0
    for part in _segments(disk, folder):
        if part.header is None or part.header.generation >= generation:
            generation = generation if part.header is None else part.header.generation
            kept.append(part)
        else:
            stale.append(part.path)
    return _bounded(kept), stale


def _segments(disk: Disk, folder: Path) -> Iterator[SegmentRange]:
    for name in disk.listdir(folder):
        if not name.endswith(_LOG):
            continue
        match = _NAME.fullmatch(name)
        if match is None:
            raise InvalidInput(
                f"{folder / name} is not a journal segment; move it or choose another folder"
            )
        first_lsn = int(match[1])
        yield SegmentRange(folder / name, first_lsn, _header(disk, folder / name, first_lsn))


def _header(disk: Disk, path: Path, first_lsn: int) -> SegmentHeader | None:
    try:
        header = decode_header(disk.read(path, HEADER_BYTES))
    except JournalTooNew as error:
        raise JournalTooNew(f"the journal segment {path} {error}") from None
    except CorruptData:
        return None
    return header if header.first_lsn == first_lsn else None


def _bounded(parts: list[SegmentRange]) -> list[SegmentRange]:
    bounded: list[SegmentRange] = []
    bound = ENDLESS
    for part in reversed(parts):
        bounded.append(change(part, bound=bound))
        if part.header is not None:
            bound = part.first_lsn
    return bounded[::-1]
