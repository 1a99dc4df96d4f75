"""A journal's folder: which files are its segments, in which order, and who stands for which lsns.

A segment is named after its first lsn. Where two hold the same lsn, the later named one counts; a
segment that was written again (a higher generation) also stands for all later named old ones.
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
from .frames import HEADER_BYTES, Header, decode_header

SPARE = ".spare"
_LOG = ".log"
_NAME = re.compile(rf"(\d{{20}}){re.escape(_LOG)}")
ENDLESS = sys.maxsize


class Part(Struct, frozen=True):
    """A segment and the lsns it answers for: ``first_lsn`` up to, but not with, ``bound``."""

    path: Path
    first_lsn: int
    header: Header | None  # None: it does not read back
    bound: int = ENDLESS
    size: int = -1  # how much of the file to read; -1 is all of it


def segment_path(folder: Path, first_lsn: int) -> Path:
    """Return where the segment that begins with this lsn stands."""
    return folder / f"{first_lsn:020}{_LOG}"


def spare_paths(disk: Disk, folder: Path) -> list[Path]:
    """Return the files that were being prepared and never came into use."""
    return [folder / name for name in disk.listdir(folder) if name.endswith(SPARE)]


def log_paths(disk: Disk, folder: Path) -> list[Path]:
    """Return the files that are segments by name."""
    return [folder / name for name in disk.listdir(folder) if _NAME.fullmatch(name)]


def parts_of(disk: Disk, folder: Path) -> tuple[list[Part], list[Path]]:
    """Return the segments that count, oldest first, and the files others stand for."""
    kept: list[Part] = []
    stale: list[Path] = []
    generation = 0
    for part in _segments(disk, folder):
        if part.header is None or part.header.generation >= generation:
            generation = generation if part.header is None else part.header.generation
            kept.append(part)
        else:
            stale.append(part.path)
    return _bounded(kept), stale


def _segments(disk: Disk, folder: Path) -> Iterator[Part]:
    for name in disk.listdir(folder):
        if not name.endswith(_LOG):
            continue
        match = _NAME.fullmatch(name)
        if match is None:
            raise InvalidInput(
                f"{folder / name} is no journal segment; move it away or choose another folder"
            )
        first_lsn = int(match[1])
        yield Part(folder / name, first_lsn, _header(disk, folder / name, first_lsn))


def _header(disk: Disk, path: Path, first_lsn: int) -> Header | None:
    try:
        header = decode_header(disk.read(path, HEADER_BYTES))
    except JournalTooNew as error:
        raise JournalTooNew(f"the journal segment {path} {error}") from None
    except CorruptData:
        return None
    return header if header.first_lsn == first_lsn else None


def _bounded(parts: list[Part]) -> list[Part]:
    bounded: list[Part] = []
    bound = ENDLESS
    for part in reversed(parts):
        bounded.append(change(part, bound=bound))
        if part.header is not None:
            bound = part.first_lsn
    return bounded[::-1]
