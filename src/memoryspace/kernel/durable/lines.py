"""Lines of a backup: a base and the journal after it, copied from a space while it is in use.

    base/<lsn>.image          the heap at the first moment with every body, hot or cold; there is none
                              if the journal begins with the empty space
    journal/<first lsn>.log   segments with every later change; a file is never changed again

A line holds every moment from its base to its last change. It needs no cold tier, whatever engine the
space has. It grows by the changes made since, if the space's journal still continues it; whether it
does is decided by the last change that both have.

Why a copy is consistent: an lsn is taken first, and nothing later is copied. What is copied is at rest:
an image of a past moment, and frames that were written before. While a line is copied, the space drops
neither checkpoints nor the journal after them, and is not scrubbed.
"""  # noqa: E501  # a table

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace as change

from ...errors import CorruptData, InvalidInput
from ..engine import Engine
from .checkpoints import CheckpointManager
from .disk import Disk
from .history import copy_all, past_of
from .journal import Frame, WriteAheadLog, read_log
from .journal.folder import segment_path
from .journal.frames import SegmentHeader, encode
from .journal.wal import SEGMENT_BYTES

Tell = Callable[[str, int, int], None]  # what is done, how much of it, of how much

BASE, JOURNAL = "base", "journal"
_TOLD_EVERY = 1000  # frames
_IMAGE = "{:020d}.image"


class Span(Struct, frozen=True):
    """The moments that a line holds.

    Attributes:
        base_lsn: The first one; 0 is the empty space.
        base_time: When it was.
        last_lsn: The last change.
        time: The moment up to which nothing else was changed.
        tail: A digest of the last change, "" if the journal has none to compare.
    """

    base_lsn: int
    base_time: float
    last_lsn: int
    time: float
    tail: str = ""


class _Gap(Exception):  # not an error: the line has to begin later
    """The journal does not hold a change: a restore, which only a checkpoint holds."""

    def __init__(self, lsn: int) -> None:
        super().__init__(lsn)
        self.lsn = lsn


def begin_line(space: Engine, folder: Path, tell: Tell) -> Span:
    """Copy a space, with all of its past that can be restored, into an empty folder.

    Call it without the lock of the space. If it raises, the folder holds no line.

    Raises:
        InvalidInput: The space keeps nothing on disk.
        CorruptData: An object cannot be read.
    """
    checkpoints, wal = _files_of(space)
    with _at_rest(space):
        last, time = _now(space)
        base = _oldest(checkpoints, wal)
        while True:
            try:
                tail, first_time = _copy_journal(wal, folder / JOURNAL, base, last, tell)
                break
            except _Gap as gap:
                shutil.rmtree(folder / JOURNAL)
                base = gap.lsn
        if not base:
            return Span(0, time if first_time is None else first_time, last, time, tail)
        tell("base", 0, 1)
        base_time = _copy_base(space, checkpoints, folder / BASE, base)
        if base_time is not None:
            tell("base", 1, 1)
            return Span(base, base_time, last, time, tail)
        shutil.rmtree(folder / JOURNAL)
        base, base_time = _copy_present(space, folder / BASE)
        tell("base", 1, 1)
        return Span(base, base_time, base, base_time)


def extend_line(space: Engine, folder: Path, span: Span, tell: Tell) -> Span | None:
    """Add the changes made since to a line; ``None`` if the journal does not continue it.

    The files that the line had are not touched.
    """
    _, wal = _files_of(space)
    with _at_rest(space):
        last, time = _now(space)
        if not span.tail or last < span.last_lsn or wal.first_lsn > span.last_lsn:
            return None
        newest = next(iter(wal.replay(span.last_lsn - 1, span.last_lsn)), None)
        if newest is None or newest.lsn != span.last_lsn or _digest(newest) != span.tail:
            return None
        try:
            tail, _ = _copy_journal(wal, folder / JOURNAL, span.last_lsn, last, tell)
        except _Gap:
            with suppress(FileNotFoundError):
                segment_path(folder / JOURNAL, span.last_lsn + 1).unlink()
            return None
        return change(span, last_lsn=last, time=time, tail=tail if tail else span.tail)


def lay_out(line: Path, span: Span, folder: Path, until: int) -> None:
    """Write the files of a space, as it was after a change, into a folder.

    Raises:
        CorruptData: The line does not hold what its span says.
    """
    disk = Disk()
    if span.base_lsn:
        name = _IMAGE.format(span.base_lsn)
        disk.mkdir(folder / "checkpoints")
        shutil.copyfile(line / BASE / name, folder / "checkpoints" / name)
        _sync(disk, folder / "checkpoints" / name)
    frames = read_log(line / JOURNAL, span.base_lsn, until) if until > span.base_lsn else iter(())
    try:
        _write_journal(frames, folder / JOURNAL, span.base_lsn, until, lambda *_: None)
    except _Gap as gap:
        raise CorruptData(
            f"the backup in {line} does not hold change {gap.lsn} of {until}; restore another one"
        ) from None


def lsn_at(line: Path, span: Span, time: float) -> int:
    """Return the last change of a line that was made at or before a time."""
    frames = read_log(line / JOURNAL, span.base_lsn, span.last_lsn)
    return max((frame.lsn for frame in frames if frame.time <= time), default=span.base_lsn)


def time_at(line: Path, span: Span, lsn: int) -> float:
    """Return when a change of a line was made."""
    if lsn == span.base_lsn:
        return span.base_time
    return next(read_log(line / JOURNAL, lsn - 1, lsn)).time


def _files_of(space: Engine) -> tuple[CheckpointManager, WriteAheadLog]:
    if space.checkpoint_manager is None or space.wal is None:
        raise InvalidInput("this space keeps nothing on disk; open it in a folder to back it up")
    return space.checkpoint_manager, space.wal


@contextmanager
def _at_rest(space: Engine) -> Iterator[None]:
    """Keep the space from dropping anything that it holds now."""
    with space.scrubbing:
        with space.writing:
            space.require_open()
            space.checkpointing.held += 1
        try:
            yield
        finally:
            with space.writing:
                space.checkpointing.held -= 1


def _now(space: Engine) -> tuple[int, float]:
    with space.writing:
        return space.last_lsn, space.clock()


def _oldest(checkpoints: CheckpointManager, wal: WriteAheadLog) -> int:
    kept = checkpoints.lsns()
    return kept[0] if kept and wal.first_lsn > 1 else 0


def _copy_journal(
    wal: WriteAheadLog, folder: Path, after: int, until: int, tell: Tell
) -> tuple[str, float | None]:
    """Copy the changes between; return a digest of the last one, and the time of the first."""
    frames = wal.replay(after, until) if until > after else iter(())
    return _write_journal(frames, folder, after, until, tell)


def _write_journal(
    frames: Iterator[Frame], folder: Path, after: int, until: int, tell: Tell
) -> tuple[str, float | None]:
    disk, files = Disk(), _Segments(folder)
    lsn, first_time, last = after, None, None
    try:
        for frame in frames:
            if frame.lsn != lsn + 1:
                raise _Gap(frame.lsn - 1)
            files.add(frame)
            lsn, last = frame.lsn, frame
            first_time = frame.time if first_time is None else first_time
            if not lsn % _TOLD_EVERY:
                tell("journal", lsn - after, until - after)
        if lsn != until:
            raise _Gap(until)
    finally:
        files.close()
    disk.sync_folder(folder)
    tell("journal", until - after, until - after)
    return "" if last is None else _digest(last), first_time


class _Segments:
    """Writes frames into new segments of a folder."""

    def __init__(self, folder: Path) -> None:
        self._disk = Disk()
        self._disk.mkdir(folder)
        self._folder = folder
        self._salt = self._size = 0
        self._fd: int | None = None

    def add(self, frame: Frame) -> None:
        """Write a frame, in a new segment if this one is long enough."""
        if self._fd is None or self._size >= SEGMENT_BYTES:
            self._begin(frame.lsn)
        assert self._fd is not None
        self._write(self._fd, encode(frame.lsn, frame.time, frame.payload, self._salt))

    def close(self) -> None:
        """Sync and close the last segment."""
        if self._fd is not None:
            fd, self._fd = self._fd, None
            try:
                self._disk.fsync(fd)
            finally:
                self._disk.close(fd)

    def _begin(self, first: int) -> None:
        self.close()
        self._fd = self._disk.open(segment_path(self._folder, first), create=True)
        self._salt, self._size = secrets.randbits(32), 0
        self._write(self._fd, SegmentHeader(self._salt, first, first - 1).encoded())

    def _write(self, fd: int, data: bytes) -> None:
        self._disk.pwrite(fd, data, self._size)
        self._size += len(data)


def _copy_base(
    space: Engine, checkpoints: CheckpointManager, folder: Path, lsn: int
) -> float | None:
    """Write an image of the heap after a change; return its time, ``None`` if that is not kept."""
    if lsn not in checkpoints.lsns():
        return None
    target = CheckpointManager(folder)
    try:
        with past_of(space, lsn, None) as past:
            copy_all(past, target)
    except (CorruptData, InvalidInput):  # of the past; the present may be intact
        shutil.rmtree(folder)
        return None
    target.verify(lsn)
    return target.time_of(lsn)


def _copy_present(space: Engine, folder: Path) -> tuple[int, float]:
    target = CheckpointManager(folder)
    copy_all(space, target)
    lsn = target.newest()
    target.verify(lsn)
    return lsn, target.time_of(lsn)


def _digest(frame: Frame) -> str:
    return sha256(b"%d %r " % (frame.lsn, frame.time) + frame.payload).hexdigest()


def _sync(disk: Disk, path: Path) -> None:
    fd = disk.open(path)
    try:
        disk.fsync(fd)
    finally:
        disk.close(fd)
    disk.sync_folder(path.parent)
