"""The writer of a journal: appends, syncs, and repairs after a failed sync.

A failed sync may have dropped dirty pages while marking them clean, so no later sync of the same
file can be trusted. Frames that are not durable yet are therefore kept in RAM (under the ``OS``
policy, which promises nothing about them, they are read back instead) and written again, into a new
segment that is synced before it gets its name.
"""

from __future__ import annotations

import secrets
import threading
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from ....events import EventStream
from ..disk import Disk
from .damage import JournalUnavailable, unavailable
from .folder import ENDLESS, SegmentRange, log_paths, spare_paths
from .frames import HEADER_BYTES, MOST_AROUND, Frame, SegmentHeader, encode
from .recovery import read_parts
from .segments import SegmentFile
from .spares import NEVER, Spare, Spares


class JournalWriter:
    """Appends frames to the newest segment. Thread-safe."""

    def __init__(
        self,
        disk: Disk,
        folder: Path,
        *,
        segment_bytes: int,
        clock: Callable[[], float],
        keep_frames: bool,
        events: EventStream,
    ) -> None:
        self._disk, self._folder, self._clock, self._events = disk, folder, clock, events
        self._pwrite = disk.pwrite  # saves a lookup: append is the hot path
        self._segment_bytes = segment_bytes
        self._keep_frames = keep_frames
        self.lock = threading.RLock()
        self.segments: list[SegmentFile] = []  # oldest first; the last one is written to
        self.last_lsn = 0
        self.durable_lsn = 0
        self.bytes_written = 0
        self.closed = False
        self._kept: deque[Frame] = deque()  # exactly the frames after durable_lsn
        self._folder_synced = True
        self._broken = False
        self._generation = 0
        self._limit = segment_bytes
        self._spare_due_at = NEVER
        self._clean = True  # no append since the last sync began
        self.on_dirty: Callable[[], None] | None = None
        self.spares = Spares(disk, folder, segment_bytes, events)
        self.spares.on_ready = self._plan

    def adopt(self, segments: list[SegmentFile], last_lsn: int) -> None:
        """Take over the segments found on opening, all of them durable."""
        self.segments = segments
        self.last_lsn = self.durable_lsn = last_lsn
        self._generation = max((each.header.generation for each in segments), default=0)
        if segments:
            self._plan()

    @property
    def is_durable(self) -> bool:
        """Whether a sync would have nothing to do."""
        return self.durable_lsn == self.last_lsn and self._folder_synced and not self._broken

    def append(self, payload: bytes) -> int:
        """Hand a frame to the operating system and return its lsn; nothing if it raises."""
        with self.lock:
            if self._broken or self.closed:
                self._make_ready()
            segment = self.segments[-1]
            if segment.end + len(payload) + MOST_AROUND > self._limit:
                segment = self._segment_for_any_size()
            lsn, now = self.last_lsn + 1, self._clock()
            data = encode(lsn, now, payload, segment.header.salt)
            end = segment.end + len(data)
            if self._keep_frames:
                self._kept.append(Frame(lsn, now, payload))
            try:
                self._pwrite(segment.fd, data, segment.end)
            except OSError as error:
                self._undo_write(segment)
                raise unavailable("write to", segment.path, error) from error
            # There is no call between these two, so a signal cannot separate them. An earlier one
            # leaves a frame that the next append overwrites, here and in what a repair rewrites.
            segment.end = end
            self.last_lsn = lsn
            self.bytes_written += len(data)
            if self._clean or end >= self._spare_due_at:
                self._look_ahead(segment)
            return lsn

    def sync(self) -> None:
        """Make every appended frame durable. Must not run in two threads at once."""
        with self.lock:
            self._require_files()
            self._clean = True
            if self._broken:
                self._repair()
            if self.is_durable:
                return
            target = self.last_lsn
            files = [each for each in self.segments if each.is_open]
            folder_synced, self._folder_synced = self._folder_synced, True
        try:
            for segment in files:  # oldest first, so that durable frames have no gap
                self._disk.fdatasync(segment.fd)
            if not folder_synced:
                self._disk.sync_folder(self._folder)
        except BaseException as error:
            with self.lock:
                self._broken = True
            if not isinstance(error, OSError):
                raise
            self._events.emit("journal_sync_failed", folder=str(self._folder), error=str(error))
            raise unavailable("sync", self._folder, error) from error
        with self.lock:
            self._settle(target)
            for segment in files:
                if segment is not self.segments[-1]:
                    segment.close(self._disk)

    def start_segment(self, first_lsn: int) -> SegmentFile:
        """Start a new segment from the spare if it is ready, or else from a file that grows."""
        header = SegmentHeader(secrets.randbits(32), first_lsn, self.last_lsn, self._generation)
        try:
            segment = self.spares.into_segment(header)
        except OSError as error:
            raise unavailable("start a new segment in", self._folder, error) from error
        self._folder_synced = False
        self.segments.append(segment)
        self.bytes_written += HEADER_BYTES
        self._plan()
        return segment

    def renew(self) -> int:
        """Make the next record the first of an empty segment; return its lsn."""
        with self.lock:
            self._require_files()
            if self._broken:
                self._repair()
            newest = self.segments[-1]
            if newest.end == HEADER_BYTES:
                self._cut_off_partial(newest)
            else:
                self.start_segment(self.last_lsn + 1)
            return self.last_lsn + 1

    def parts(self) -> list[SegmentRange]:
        """Return the current segments, for a reader."""
        with self.lock:
            bounds = [each.first_lsn for each in self.segments[1:]] + [ENDLESS]
            return [
                SegmentRange(each.path, each.first_lsn, each.header, bound, each.end)
                for each, bound in zip(self.segments, bounds, strict=True)
            ]

    def drop_before(self, lsn: int) -> None:
        """Remove whole durable segments, oldest first, so that a crash never leaves a gap."""
        with self.lock:
            while len(self.segments) > 1 and self.segments[1].first_lsn <= lsn:
                oldest = self.segments[0]
                if oldest.is_open:
                    return
                try:
                    self._disk.unlink(oldest.path)
                except OSError as error:
                    raise unavailable("remove", oldest.path, error) from error
                del self.segments[0]

    def sweep(self) -> None:
        """Remove files that are not part of the log, such as those a repair could not remove.

        A spare holds only zeros; one with other bytes failed to become a segment.
        """
        with self.lock:
            known = {each.path for each in self.segments}
            try:
                for path in log_paths(self._disk, self._folder):
                    if path not in known:
                        self._disk.unlink(path)
                for path in spare_paths(self._disk, self._folder):
                    if self._disk.read(path).strip(b"\0"):
                        self._disk.unlink(path)
                self._disk.sync_folder(self._folder)
            except OSError as error:
                raise unavailable("clean up", self._folder, error) from error

    def skip_to(self, lsn: int) -> None:
        """Start a segment that records the gap, if every frame is durable."""
        with self.lock:
            self._require_files()
            if self.durable_lsn == self.last_lsn < lsn and not self._broken:
                self.start_segment(lsn + 1)
                self.last_lsn = self.durable_lsn = lsn

    def shut(self) -> bool:
        """Refuse further appends; return ``False`` if they were refused already."""
        with self.lock:
            was_open, self.closed = not self.closed, True
            return was_open

    def close(self) -> None:
        """Close all files without a sync."""
        with self.lock:
            self.closed = True
            for segment in self.segments:
                segment.close(self._disk)
        self.spares.close()

    def check(self) -> None:
        """Verify the invariants."""
        with self.lock:
            firsts = [each.first_lsn for each in self.segments]
            assert firsts == sorted(set(firsts)), "segments are out of order"
            assert 0 <= self.durable_lsn <= self.last_lsn
            assert firsts[-1] <= self.last_lsn + 1, "the newest segment begins too late"
            assert self.closed or self.segments[-1].is_open, "nothing to write to"
            assert all(each.end >= HEADER_BYTES for each in self.segments)
            if self._keep_frames:
                kept = [frame.lsn for frame in self._kept]
                assert kept == list(range(self.durable_lsn + 1, self.last_lsn + 1))

    def _make_ready(self) -> None:
        if self.closed:
            raise self._closed_error()
        self._repair()

    def _require_files(self) -> None:
        if not self.segments[-1].is_open:
            raise self._closed_error()

    def _closed_error(self) -> JournalUnavailable:
        return JournalUnavailable(
            f"the journal in {self._folder} is closed; open it again to write to it"
        )

    def _segment_for_any_size(self) -> SegmentFile:
        """Return the newest segment if it is empty (it takes any record), or else a new one."""
        newest = self.segments[-1]
        return newest if newest.end == HEADER_BYTES else self.start_segment(self.last_lsn + 1)

    def _cut_off_partial(self, segment: SegmentFile) -> None:
        """Cut off what may be left behind the end of a record that could not be written."""
        try:
            self._disk.truncate(segment.fd, segment.end)
        except OSError as error:
            raise unavailable("cut", segment.path, error) from error
        segment.size = 0
        self._plan()

    def _look_ahead(self, segment: SegmentFile) -> None:
        """After an append, schedule a sync and the next segment if they are due."""
        if self._clean:
            self._clean = False
            if self.on_dirty is not None:
                self.on_dirty()
        if segment.end >= self._spare_due_at:
            self._spare_due_at = NEVER
            self.spares.order()

    def _plan(self) -> None:
        """Decide when this segment is full and when the next one is prepared."""
        with self.lock:
            segment = self.segments[-1]
            leave = self.spares.is_ready and self.spares.grows(segment)
            self._limit = 0 if leave else self._segment_bytes
            self._spare_due_at = self.spares.due_at(segment)

    def _settle(self, durable_lsn: int) -> None:
        self.durable_lsn = max(self.durable_lsn, durable_lsn)
        while self._kept and self._kept[0].lsn <= durable_lsn:
            self._kept.popleft()

    def _undo_write(self, segment: SegmentFile) -> None:
        """Undo a partial write; the next one overwrites it in any case."""
        if self._keep_frames:
            self._kept.pop()
        with suppress(OSError):
            self._disk.truncate(segment.fd, segment.end)
            segment.size = 0

    def _repair(self) -> None:
        """Write every frame that is not durable again, into a new segment, and sync that.

        The same lsns are then in two places. The generation of the new segment marks it as the one
        that counts, even if a crash comes before the old segments are removed.
        """
        first = self.durable_lsn + 1
        spare: Spare | None = None
        try:
            spare = Spare.create(self._disk, self._folder)
            segment = self._write_again(spare, self._header_from(first))
            spare, replaced = None, self._put_in_place(segment)
            self._disk.sync_folder(self._folder)
        except OSError as error:
            if spare is not None:
                spare.discard(self._disk)
            raise unavailable("repair after a failed sync", self._folder, error) from error
        self._finish_repair(replaced)

    def _header_from(self, first: int) -> SegmentHeader:
        replaced = [each.header for each in self.segments if each.first_lsn == first]
        previous = replaced[0].previous_lsn if replaced else first - 1
        return SegmentHeader(secrets.randbits(32), first, previous, self._generation + 1)

    def _write_again(self, spare: Spare, header: SegmentHeader) -> SegmentFile:
        end, lsn = HEADER_BYTES, header.first_lsn
        for frame in self._not_durable():
            data = encode(frame.lsn, frame.time, frame.payload, header.salt)
            self._disk.pwrite(spare.fd, data, end)
            end, lsn = end + len(data), lsn + 1
        if lsn != self.last_lsn + 1:
            raise OSError(f"records {lsn} to {self.last_lsn} are unreadable")
        self._disk.pwrite(spare.fd, header.encoded(), 0)
        self._disk.fsync(spare.fd)
        return spare.enter(self._disk, self._folder, header, end=end)

    def _not_durable(self) -> Iterable[Frame]:
        if self._keep_frames:
            newest = {frame.lsn: frame for frame in self._kept}
            return [newest[lsn] for lsn in range(self.durable_lsn + 1, self.last_lsn + 1)]
        found = read_parts(self._disk, self.parts, self.durable_lsn, self.last_lsn)
        return (frame for frame, _ in found)

    def _put_in_place(self, segment: SegmentFile) -> list[SegmentFile]:
        """Make a new segment the one to read and append to; return those it supersedes."""
        first = segment.first_lsn
        replaced = [each for each in self.segments if each.first_lsn > first]
        for old in self.segments:
            old.close(self._disk)
        self.segments = [each for each in self.segments if each.first_lsn < first] + [segment]
        self._generation = segment.header.generation
        return replaced

    def _finish_repair(self, replaced: list[SegmentFile]) -> None:
        for old in replaced:
            with suppress(OSError):  # removed at the next opening
                self._disk.unlink(old.path)
        self._events.emit(
            "journal_repaired",
            folder=str(self._folder),
            first=self.durable_lsn + 1,
            last=self.last_lsn,
        )
        self._broken, self._folder_synced = False, True
        self._settle(self.last_lsn)
        self._plan()
