"""Opening a journal for writing: survey, refuse or salvage, clean up, sync.

Nothing is changed before the survey is complete, so a log that is refused stays as it was.
"""

from __future__ import annotations

from pathlib import Path

from ..disk import Disk
from .damage import JournalDamaged
from .folder import parts_of, spare_paths
from .frames import HEADER_BYTES
from .recovery import ReadableSegment, Survey, survey
from .segments import SegmentFile
from .writer import JournalWriter


def open_log(writer: JournalWriter, disk: Disk, folder: Path, *, salvage: bool) -> Survey:
    """Open the log in a folder for a writer; return what was found."""
    _make_folder(disk, folder)
    parts, stale = parts_of(disk, folder)
    seen = survey(disk, parts)
    if seen.damage and not salvage:
        raise JournalDamaged(folder, seen.damage)
    for path in [*spare_paths(disk, folder), *stale, *seen.headless]:
        disk.unlink(path)
    segments = [_made_durable(disk, each) for each in seen.segments]
    disk.sync_folder(folder)
    if segments:
        segments[-1].fd = disk.open(segments[-1].path)
    writer.adopt(segments, seen.last_lsn)
    if not segments or seen.ends_headless:
        # Nothing can be appended to a segment that lost its header: start another one.
        writer.start_segment(seen.last_lsn + 1)
    return seen


def _make_folder(disk: Disk, folder: Path) -> None:
    if not folder.is_dir():
        disk.mkdir(folder)
        disk.sync_folder(folder.parent)


def _made_durable(disk: Disk, found: ReadableSegment) -> SegmentFile:
    """Cut off a torn end and sync, so that what was read cannot vanish later."""
    size = found.size
    fd = disk.open(found.path)
    try:
        if found.tail:
            disk.truncate(fd, found.end)
            size = 0
        disk.fdatasync(fd)
    finally:
        disk.close(fd)
    return SegmentFile(found.path, found.header, fd=-1, end=max(found.end, HEADER_BYTES), size=size)
