"""``WriteAheadLog``: numbered records that outlive the process, and the machine if you ask for it.

``append`` hands a record to the operating system: from then on it survives a killed process.
``commit`` waits for what the policy promises about a power cut. Opening a log drops what a crash
cut short, and refuses one that lost records in the middle unless it is told to salvage the rest.
One object at a time may own a folder; others look at it with ``read_log``.
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
from .folder import Part
from .frames import FRAME_BYTES, HEADER_BYTES, MAX_PAYLOAD, Frame
from .opening import open_log
from .policy import ALWAYS, OS, SyncPolicy, as_policy
from .recovery import Survey, read_parts
from .writer import Writer

SEGMENT_BYTES = 8 * 1024 * 1024


class WriteAheadLog(ClosingNow):
    """A log in a folder of its own. Safe to share between threads and event loops.

    ``torn`` tells what a crash had cut short, ``damage`` what was lost if the log was salvaged.
    Listeners to its events must not write to it.
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
        self._writer = Writer(
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
        self._tell(events)

    @property
    def last_lsn(self) -> int:
        """The newest record's number; 0 if there was none yet."""
        return self._writer.last_lsn

    @property
    def durable_lsn(self) -> int:
        """Up to here a power cut loses nothing."""
        return self._writer.durable_lsn

    @property
    def first_lsn(self) -> int:
        """The oldest record still held; the next one to come if there is none."""
        return self._writer.segments[0].first_lsn

    @property
    def bytes_written(self) -> int:
        """What this object has written since it was opened, without what it wrote again."""
        return self._writer.bytes_written

    def bytes_since(self, lsn: int) -> int:
        """Return about how many bytes the records after ``lsn`` take; costs O(segments)."""
        return sum(_share(part, lsn, self.last_lsn) for part in self._writer.parts())

    def append(self, payload: bytes) -> int:
        """Hand a record to the operating system and return its lsn.

        If it raises, nothing was appended: the next record gets the same lsn and place.
        """
        if type(payload) is not bytes:
            raise TypeError(f"a record is bytes, got {type(payload).__name__}")
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
        """``commit``, without blocking the event loop."""
        if self._commit_waits and lsn > self._writer.durable_lsn:
            await self._flusher.future(self._appended(lsn))

    def sync(self) -> None:
        """Make everything appended so far durable, whatever the policy."""
        if not self._writer.is_durable:
            self._flusher.wait(self._writer.last_lsn)

    def replay(self, after: int = 0, until: int | None = None) -> Iterator[Frame]:
        """Yield the records after one lsn up to another, or up to the newest of this moment.

        Others may append meanwhile. If what is still to come is truncated away, it raises.
        """
        newest = self._writer.last_lsn
        last = newest if until is None else min(until, newest)
        found = read_parts(self._disk, self._writer.parts, after, last)
        return (frame for frame, _ in found)

    def lsn_at(self, time: float) -> int:
        """Return the newest record that was committed at or before ``time``; 0 if none was."""
        for part in reversed(self._writer.parts()):
            found = self.replay(part.first_lsn - 1, part.bound - 1)
            lsn = max((frame.lsn for frame in found if frame.time <= time), default=0)
            if lsn:
                return lsn
        return 0

    def truncate(self, before: int) -> None:
        """Remove segments that hold only records before this lsn; never the newest one."""
        parts = self._writer.parts()
        if len(parts) > 1 and parts[0].bound <= before:
            self.sync()
            self._writer.drop_before(before)

    def renew(self) -> int:
        """Begin a new segment and make what was before durable; return the lsn it begins with."""
        first = self._writer.renew()
        self.sync()
        return first

    def forget_before(self, lsn: int) -> None:
        """Remove every file with a record before this lsn, and every stray one, for good.

        The record must be the first of a segment, as ``renew`` makes it.
        """
        self.sync()
        self._writer.drop_before(lsn)
        self._writer.sweep()
        if self.first_lsn < lsn:
            raise JournalUnavailable(
                f"the journal in {self.path} was repaired meanwhile, and records before {lsn} "
                "stand beside later ones; nothing was lost: try again"
            )

    def skip_to(self, lsn: int) -> None:
        """Let the next record be ``lsn + 1``, as after restoring a state that is ahead."""
        if lsn < self.last_lsn:
            raise InvalidInput(f"cannot skip to record {lsn}: {self.last_lsn} was written already")
        while lsn > self.last_lsn:
            self.sync()  # so that what may have to be written again never spans the gap
            self._writer.skip_to(lsn)
        self.sync()

    def close(self) -> None:
        """Sync, whatever the policy, and let go of the files. A second call does nothing."""
        if not self._writer.shut():
            return
        try:
            try:
                self.sync()
            except JournalUnavailable:
                self.sync()  # repairs, if the disk is willing by now
        finally:
            self._writer.spares.close()  # first, so that nobody finishes one
            self._flusher.stop()
            self._writer.close()

    def check(self) -> None:
        """Verify that what is on disk is what this object believes."""
        self._writer.check()
        last = self._writer.last_lsn
        lsns = [frame.lsn for frame in self.replay(until=last)]
        assert all(lsn < after for lsn, after in pairwise(lsns))
        newest = self._writer.parts()[-1]
        if newest.first_lsn <= last:
            assert lsns[-1] == last, f"record {last} does not read back"
            count = len([lsn for lsn in lsns if lsn >= newest.first_lsn])
            assert self.damage or count == last + 1 - newest.first_lsn, "records are missing"

    def _connect(self) -> None:
        if self.policy != OS:
            spares = self._writer.spares
            spares.ask = lambda: self._flusher.run_aside(spares.prepare)
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

    def _tell(self, events: EventStream) -> None:
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


def _share(part: Part, lsn: int, last_lsn: int) -> int:
    """The bytes of a segment's records after ``lsn``, taken as equally long."""
    stop = min(part.bound, last_lsn + 1)
    records = stop - part.first_lsn
    if records <= 0 or lsn >= stop - 1:
        return 0
    wanted = stop - 1 - max(lsn, part.first_lsn - 1)
    return (part.size - HEADER_BYTES) * wanted // records
