"""Reading a journal that a crash may have left torn or damaged. Nothing is written here.

An unreadable stretch that cost no record is ignored: it stems from a failed write that was repeated
elsewhere.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from msgspec import Struct, field

from ..disk import Disk
from .damage import Damage, JournalDamaged, JournalUnavailable, Torn, unavailable
from .folder import ENDLESS, SegmentRange, parts_of
from .frames import HEADER_BYTES, Frame, SegmentHeader, SegmentReader, guess_last_lsn


class ReadableSegment(Struct):
    """A readable segment: where its frames end, how many bytes behind are not a frame, its size."""

    path: Path
    header: SegmentHeader
    end: int
    tail: int
    size: int


class Survey(Struct):
    """The result of reading a log. ``last_lsn`` includes lost records: no lsn is given twice."""

    segments: list[ReadableSegment] = field(default_factory=list)
    damage: list[Damage] = field(default_factory=list)
    torn: Torn | None = None
    headless: list[Path] = field(default_factory=list)  # trailing files without records
    ends_headless: bool = False  # the newest segment lost its header and its records
    last_lsn: int = 0


def survey(disk: Disk, parts: list[SegmentRange]) -> Survey:
    """Read every segment once, in order, and return what was found."""
    seen = Survey()
    deque(_walk(disk, parts, seen), maxlen=0)
    trailing = []
    while parts and parts[-1].header is None:
        trailing.append(parts.pop())
    for part in reversed(trailing):
        _judge_headless(seen, part, disk.read(part.path))
    return seen


def read_log(
    path: Path | str,
    after: int = 0,
    until: int | None = None,
    *,
    salvage: bool = False,
    disk: Disk | None = None,
) -> Iterator[Frame]:
    """Yield the frames of a journal, which another object may be writing to. Never writes.

    A torn end is treated as the end. Damage raises ``JournalDamaged`` when it is reached, or is
    skipped with ``salvage``.
    """
    disk, folder = Disk() if disk is None else disk, Path(path)
    for frame, seen in read_parts(disk, lambda: parts_of(disk, folder)[0], after, until):
        if seen.damage and not salvage:
            raise JournalDamaged(folder, seen.damage)
        yield frame


def read_parts(
    disk: Disk, parts: Callable[[], list[SegmentRange]], after: int, until: int | None
) -> Iterator[tuple[Frame, Survey]]:
    """Yield frames with the survey so far; list the segments again if one has vanished."""
    last = ENDLESS if until is None else until
    started = False
    found: list[SegmentRange] = []
    while after < last:
        before, found = found, parts()
        if started and found and found[0].first_lsn > after + 1:
            raise JournalUnavailable(
                f"the journal was truncated up to record {found[0].first_lsn - 1} while it was "
                f"read at {after}; read again from there"
            )
        try:
            seen = Survey()
            for frame in _walk(disk, _needed(found, after, last), seen):
                if frame.lsn > last:
                    return
                if frame.lsn > after:
                    started, after = True, frame.lsn
                    yield frame, seen
                    if after == last:
                        return
            return
        except OSError as error:
            if not isinstance(error, FileNotFoundError) or found == before:
                place = found[0].path.parent if found else Path()
                raise unavailable("read", Path(error.filename or place), error) from error


def _needed(parts: Iterable[SegmentRange], after: int, last: int) -> list[SegmentRange]:
    return [part for part in parts if part.bound > after + 1 and part.first_lsn <= last]


def _walk(disk: Disk, parts: list[SegmentRange], seen: Survey) -> Iterator[Frame]:
    """Yield each intact record once, in lsn order, and update ``seen``."""
    if parts:
        seen.last_lsn = parts[0].first_lsn - 1
    suspect: Torn | None = None  # the unreadable end of the previous segment
    for part in parts:
        data = disk.read(part.path, part.size)
        if part.header is None:
            suspect = Torn(part.path, 0, len(data.rstrip(b"\0")))
            continue
        _note_gap(seen, part, part.header, suspect)
        reader = SegmentReader(data, part.header)
        seen.last_lsn = part.header.first_lsn - 1
        for frame in reader:
            if reader.holes:
                _note_hole(seen, part, reader)
            if frame.lsn >= part.bound:  # superseded by the next segment
                found = ReadableSegment(part.path, part.header, len(data), 0, len(data))
                seen.last_lsn = part.bound - 1
                break
            yield frame
        else:
            found = ReadableSegment(part.path, part.header, reader.end, reader.tail, len(data))
            seen.last_lsn = reader.last_lsn
        suspect = Torn(found.path, found.end, found.tail) if found.tail else None
        seen.segments.append(found)
    if seen.segments and seen.segments[-1].tail:
        newest = seen.segments[-1]
        seen.torn = Torn(newest.path, newest.end, newest.tail)


def _note_gap(
    seen: Survey, part: SegmentRange, header: SegmentHeader, suspect: Torn | None
) -> None:
    """Record the lsns between the last one seen and a segment's predecessor as lost."""
    if header.previous_lsn > seen.last_lsn and part.first_lsn > seen.last_lsn + 1:
        where = Torn(part.path, 0, 0) if suspect is None else suspect
        seen.damage.append(
            Damage(where.file, where.offset, where.bytes, seen.last_lsn + 1, header.previous_lsn)
        )


def _note_hole(seen: Survey, part: SegmentRange, reader: SegmentReader) -> None:
    hole = reader.holes.pop()
    if hole.first_lsn < part.bound:
        last = min(hole.last_lsn, part.bound - 1)
        seen.damage.append(Damage(part.path, hole.offset, hole.bytes, hole.first_lsn, last))


def _judge_headless(seen: Survey, part: SegmentRange, data: bytes) -> None:
    """Classify a trailing segment without a header: just begun, superseded, or lost."""
    used = len(data.rstrip(b"\0"))
    first = seen.last_lsn + 1
    if not (seen.segments and seen.segments[-1].tail):
        first = max(first, part.first_lsn)  # the segment before it is intact
    last = guess_last_lsn(data, part.first_lsn)
    if used <= HEADER_BYTES or last < first:
        seen.headless.append(part.path)
        if used and last >= first and seen.torn is None:
            seen.torn = Torn(part.path, 0, used)
        return
    seen.damage.append(Damage(part.path, 0, used, first, last))
    seen.last_lsn, seen.torn, seen.ends_headless = last, None, True
