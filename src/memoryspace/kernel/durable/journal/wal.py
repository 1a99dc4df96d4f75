"""``WriteAheadLog``: numbered records that survive a killed process and, if asked, a power cut.

``append`` hands a record to the operating system: from then on it survives a killed process.
``commit`` waits for what the policy promises about a power cut. Opening a log drops a write that a
crash cut short, and refuses a log that lost records in the middle unless asked to salvage the rest.
One object at a time may own a folder; others read it with ``read_log``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

from ....errors import InvalidInput
from ....events import EventStream
from ....lifecycle import ClosingNow
from ..disk import Disk
from .damage import Damage, JournalUnavailable, Torn, unavailable
from .flusher import Flusher
from .folder import SegmentRange
from .frames import FRAME_BYTES, HEADER_BYTES, MAX_PAYLOAD, Frame
from .opening import open_log
from .policy import ALWAYS, OS, SyncPolicy, as_policy
from .recovery import Survey, read_parts
from .writer import JournalWriter

SEGMENT_BYTES = 8 * 1024 * 1024


class WriteAheadLog(ClosingNow):
    """A log in a folder of its own. Safe to share between threads and event loops.

    ``torn`` is the write that a crash cut short, ``damage`` what was lost if the log was salvaged.
    Listeners to its events must not write to it.

    Args:
        path: The folder; it is created if need be.
        sync: When records are synced: ``ALWAYS``, ``group(ms)``, ``OS`` or their names.
        segment_bytes: The size of a file of the log.
        clock: Returns the time to store with each record.
        events: The stream to emit events to.
        disk: The file system to use.
        salvage: Open a damaged log with the records that are intact.

    Raises:
        JournalDamaged: Records in the middle are lost, and ``salvage`` is not set.
        JournalUnavailable: The disk failed.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        sync: SyncPolicy | str = ALWAYS,
        segment_bytes: int = SEGMENT_BYTES,
        clock: Callable[[], float] = time.time,
        events: EventStream | None = None,
        disk: Disk | None = None,
        salvage: bool = False,
    ) -> None:
        if segment_bytes < HEADER_BYTES + FRAME_BYTES:
            raise InvalidInput(
                f"segment_bytes must be {HEADER_BYTES + FRAME_BYTES} or more, got {segment_bytes}"
            )
        self.path = Path(path).absolute()
        self.policy = as_policy(sync)
        self._disk = Disk() if disk is None else disk
        events = EventStream() if events is None else events
        self._writer = JournalWriter(
            self._disk,
            self.path,
            segment_bytes=segment_bytes,
            clock=clock,
            keep_frames=self.policy != OS,
            events=events,
        )
        self._flusher = Flusher(
            self._writer.sync, lambda: self._writer.durable_lsn, interval=self.policy.interval
        )
        self._commit_waits = self.policy == ALWAYS
        self._connect()
        found = self._open(salvage)
        self.torn: Torn | None = found.torn
        self.damage: tuple[Damage, ...] = tuple(found.damage)
        self._report(events)

    @property
    def last_lsn(self) -> int:
        """The number of the newest record; 0 if there is none yet."""
        return self._writer.last_lsn

    @property
    def durable_lsn(self) -> int:
        """The number of the last record that survives a power cut."""
        return self._writer.durable_lsn

    @property
    def first_lsn(self) -> int:
        """The number of the oldest record kept, or of the next one if there is none."""
        return self._writer.segments[0].first_lsn

    @property
    def bytes_written(self) -> int:
        """How many bytes were written since opening, not counting repeated writes."""
        return self._writer.bytes_written

    def bytes_since(self, lsn: int) -> int:
        """Return about how many bytes the records after ``lsn`` take, in O(segments)."""
        return sum(_share(part, lsn, self.last_lsn) for part in self._writer.parts())

    def append(self, payload: bytes) -> int:
        """Hand a record to the operating system and return its lsn.

        If it raises, nothing was appended, and the next record gets the same lsn.
        """
        if type(payload) is not bytes:
            raise TypeError(f"a record must be bytes, got {type(payload).__name__}")
        if len(payload) > MAX_PAYLOAD:
            raise InvalidInput(
                f"a record takes at most {MAX_PAYLOAD} bytes, got {len(payload)}; split it"
            )
        return self._writer.append(payload)

    def commit(self, lsn: int) -> None:
        """Return when the policy's promise holds for this record and all before it."""
        if self._commit_waits and lsn > self._writer.durable_lsn:
            self._flusher.wait(self._appended(lsn))

    async def commit_async(self, lsn: int) -> None:
        """Do what ``commit`` does without blocking the event loop."""
        if self._commit_waits and lsn > self._writer.durable_lsn:
            await self._flusher.future(self._appended(lsn))

    def sync(self) -> None:
        """Make every record so far durable, regardless of the policy."""
        if not self._writer.is_durable:
            self._flusher.wait(self._writer.last_lsn)

    def replay(self, after: int = 0, until: int | None = None) -> Iterator[Frame]:
        """Yield the records after one lsn up to another, or up to the newest at the call.

        Records may be appended meanwhile. If records still to come are truncated, it raises.
        """
        newest = self._writer.last_lsn
        last = newest if until is None else min(until, newest)
        found = read_parts(self._disk, self._writer.parts, after, last)
        return (frame for frame, _ in found)

    def lsn_at(self, time: float) -> int:
        """Return the lsn of the newest record appended at or before ``time``, or 0."""
        for part in reversed(self._writer.parts()):
            found = self.replay(part.first_lsn - 1, part.bound - 1)
            lsn = max((frame.lsn for frame in found if frame.time <= time), default=0)
            if lsn:
                return lsn
        return 0

    def truncate(self, before: int) -> None:
        """Remove segments with only records before this lsn, but never the newest segment."""
        parts = self._writer.parts()
        if len(parts) > 1 and parts[0].bound <= before:
            self.sync()
            self._writer.drop_before(before)

    def renew(self) -> int:
        """Start a new segment and sync everything before it; return its first lsn."""
        first = self._writer.renew()
        self.sync()
        return first

    def forget_before(self, lsn: int) -> None:
        """Remove every file with a record before this lsn, and every stray file, durably.

        The lsn must be the first of a segment, as returned by ``renew``.
        """
        self.sync()
        self._writer.drop_before(lsn)
        self._writer.sweep()
        if self.first_lsn < lsn:
            raise JournalUnavailable(
                f"the journal in {self.path} was repaired meanwhile, and records before {lsn} are "
                "in one file with later ones; nothing was lost: try again"
            )

    def skip_to(self, lsn: int) -> None:
        """Make ``lsn + 1`` the next lsn, as after restoring a state that is ahead."""
        if lsn < self.last_lsn:
            raise InvalidInput(f"cannot skip to record {lsn}: {self.last_lsn} was written already")
        while lsn > self.last_lsn:
            self.sync()  # so that records to be rewritten never span the gap
            self._writer.skip_to(lsn)
        self.sync()

    def close(self) -> None:
        """Sync, regardless of the policy, and close the files. A second call does nothing."""
        if not self._writer.shut():
            return
        try:
            try:
                self.sync()
            except JournalUnavailable:
                self.sync()  # repairs, if the disk works again
        finally:
            self._writer.spares.close()  # first, so that no spare is finished
            self._flusher.stop()
            self._writer.close()

    def check(self) -> None:
        """Verify that the files match the state of this object."""
        self._writer.check()
        last = self._writer.last_lsn
        lsns = [frame.lsn for frame in self.replay(until=last)]
        assert all(lsn < after for lsn, after in pairwise(lsns))
        newest = self._writer.parts()[-1]
        if newest.first_lsn <= last:
            assert lsns[-1] == last, f"record {last} is unreadable"
            count = len([lsn for lsn in lsns if lsn >= newest.first_lsn])
            assert self.damage or count == last + 1 - newest.first_lsn, "records are missing"

    def _connect(self) -> None:
        if self.policy != OS:
            spares = self._writer.spares
            spares.ask = lambda: self._flusher.run_in_background(spares.prepare)
        if self.policy.interval is not None:
            self._writer.on_dirty = self._flusher.sync_soon

    def _open(self, salvage: bool) -> Survey:
        try:
            return open_log(self._writer, self._disk, self.path, salvage=salvage)
        except OSError as error:
            self._writer.close()
            raise unavailable("open", self.path, error) from error
        except BaseException:
            self._writer.close()
            raise

    def _report(self, events: EventStream) -> None:
        if self.torn is not None:
            torn = self.torn
            events.emit(
                "journal_torn_tail", file=str(torn.file), offset=torn.offset, bytes=torn.bytes
            )
        if self.damage:
            events.emit("journal_damaged", folder=str(self.path), damage=self.damage)

    def _appended(self, lsn: int) -> int:
        if lsn > self._writer.last_lsn:
            raise InvalidInput(
                f"record {lsn} was never appended; the newest is {self._writer.last_lsn}"
            )
        return lsn


def _share(part: SegmentRange, lsn: int, last_lsn: int) -> int:
    """Return the bytes of a segment's records after ``lsn``, assuming equal lengths."""
    stop = min(part.bound, last_lsn + 1)
    records = stop - part.first_lsn
    if records <= 0 or lsn >= stop - 1:
        return 0
    wanted = stop - 1 - max(lsn, part.first_lsn - 1)
    return (part.size - HEADER_BYTES) * wanted // records
