"""``CheckpointManager``: the checkpoints of a space. Recovery starts from the newest readable one.

An image is written under a temporary name and renamed, to its lsn, when it is complete and durable.
``keep`` checkpoints stay, and those needed for the last ``keep_seconds``; the journal is needed
from the oldest of them on.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable
from contextlib import suppress
from os import PathLike
from pathlib import Path

from ...errors import CorruptData, InvalidInput, StoreUnavailable
from ..heap.heap import Heap
from .disk import Disk
from .image import Image, ImageTooNew, ImageWriter, Spill

logger = logging.getLogger(__name__)

_NAME = re.compile(r"(\d{20})\.image")
_SCRUBBED = re.compile(r"(\d{20})\.scrubbed")  # an empty file: the past before was erased
_TEMPORARY = ".tmp"


class CheckpointManager:
    """The checkpoints in a folder.

    Args:
        path: The folder; it is created if need be.
        keep: How many checkpoints to keep at least.
        keep_seconds: Keep those needed to go back this many seconds.
        disk: The file system to use.

    Raises:
        InvalidInput: ``keep`` or ``keep_seconds`` is out of range.
        StoreUnavailable: The folder cannot be created or read.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        keep: int = 2,
        keep_seconds: float = 0.0,
        disk: Disk | None = None,
    ) -> None:
        if keep < 1 or keep_seconds < 0:
            raise InvalidInput(
                f"keep must be 1 or more and keep_seconds 0 or more, got {keep}, {keep_seconds}"
            )
        self.path = Path(path)
        self.keep = keep
        self.keep_seconds = keep_seconds
        self._disk = Disk() if disk is None else disk
        self._times: dict[int, float] = {}
        self._damaged: set[int] = set()  # those found unreadable
        try:
            self._disk.mkdir(self.path)
            self._sweep()
        except OSError as error:
            raise _unavailable(self.path, error) from error

    def lsns(self) -> list[int]:
        """Return the lsns of all checkpoints, oldest first."""
        return self._named(_NAME)

    def begin(
        self, heap: Heap, *, cold_body: Callable[[int], bytes] | None = None
    ) -> CheckpointWriter:
        """Start to write a checkpoint of a heap. Call it with the lock of the heap held."""
        try:
            return CheckpointWriter(self, heap, self._disk, cold_body)
        except OSError as error:
            raise _unavailable(self.path, error) from error

    def write(
        self, heap: Heap, lsn: int, now: float, tombstones: list[tuple[int, int]] | None = None
    ) -> int:
        """Write a whole checkpoint at once and return its lsn."""
        writer = self.begin(heap)
        try:
            while not writer.capture(
                float("inf"), lsn, now, [] if tombstones is None else tombstones
            ):
                pass
            return writer.finish()
        except BaseException:
            writer.abandon()
            raise

    def load(self, heap: Heap, spill: Spill, until: int | None = None) -> Image | None:
        """Fill an empty heap from the newest readable checkpoint that is not after ``until``.

        Return its image, for the figures, or ``None`` if there is none. A damaged checkpoint is
        skipped with a warning; the journal then has to reach further back.
        """
        wanted = [lsn for lsn in self.lsns() if until is None or lsn <= until]
        for lsn in reversed(wanted):
            try:
                image = Image(self.path_of(lsn))
            except ImageTooNew:
                raise
            except CorruptData as error:
                logger.warning("a damaged checkpoint was skipped: %s", error)
                self._damaged.add(lsn)
                continue
            except OSError as error:
                raise _unavailable(self.path, error) from error
            self._times[lsn] = image.closing.time
            with image:
                image.load_into(heap, spill)
            return image
        return None

    def newest(self, until: int | None = None) -> int:
        """Return the lsn of the newest checkpoint (not after ``until``), readable or not; or 0."""
        return max((lsn for lsn in self.lsns() if until is None or lsn <= until), default=0)

    def lsn_at(self, time: float) -> int:
        """Return the lsn of the newest checkpoint taken at or before ``time``; 0 if none was."""
        for lsn in reversed(self.lsns()):
            try:
                if self.time_of(lsn) <= time:
                    return lsn
            except CorruptData as error:
                logger.warning("a damaged checkpoint was skipped: %s", error)
        return 0

    def remove(self, lsn: int) -> None:
        """Remove a checkpoint if it exists."""
        try:
            self._disk.unlink(self.path_of(lsn))
            self._disk.sync_folder(self.path)
        except OSError as error:
            raise _unavailable(self.path, error) from error

    def time_of(self, lsn: int) -> float:
        """Return when a checkpoint was taken."""
        if lsn not in self._times:
            with Image(self.path_of(lsn)) as image:
                self._times[lsn] = image.closing.time
        return self._times[lsn]

    def prune(self, now: float) -> int:
        """Remove checkpoints that need not be kept; return the lsn of the oldest one left.

        The empty space that a journal begins with counts as a checkpoint with lsn 0.
        """
        try:
            lsns = self.lsns()
            oldest = self._oldest_needed(lsns, now)
            for lsn in lsns:
                if lsn < oldest:
                    with suppress(IsADirectoryError):  # not one of ours
                        self._disk.unlink(self.path_of(lsn))
                    self._times.pop(lsn, None)
        except (OSError, StoreUnavailable) as error:
            logger.warning("old checkpoints could not be removed: %s", error)
            return 0
        return oldest

    def forget_before(self, lsn: int) -> None:
        """Remove every checkpoint before an lsn, regardless of ``keep``, and record the scrub."""
        try:
            self._note_scrub(lsn)
            for old in self.lsns():
                if old < lsn:
                    self._disk.unlink(self.path_of(old))
                    self._times.pop(old, None)
            self._disk.sync_folder(self.path)
        except OSError as error:
            raise _unavailable(self.path, error) from error

    def verify(self, lsn: int) -> None:
        """Read a checkpoint back; ``CorruptData`` if it is damaged.

        One that was replaced by a later one meanwhile is fine.
        """
        try:
            with Image(self.path_of(lsn)):  # verifies every checksum
                pass
        except OSError as error:
            if self.newest() <= lsn:
                raise _unavailable(self.path, error) from error

    @property
    def scrubbed_lsn(self) -> int:
        """Everything before this lsn was scrubbed; 0 if there was no scrub."""
        return max(self._named(_SCRUBBED), default=0)

    def path_of(self, lsn: int) -> Path:
        """Return the path of a checkpoint."""
        return self.path / f"{lsn:020d}.image"

    def _oldest_needed(self, lsns: list[int], now: float) -> int:
        kept = [0, *(lsn for lsn in lsns if lsn not in self._damaged)]
        while len(kept) > self.keep:
            try:
                if not self._too_old(kept[1], now):
                    break
            except CorruptData as error:  # it cannot be restored
                logger.warning("a damaged checkpoint does not count towards keep: %s", error)
                self._damaged.add(kept.pop(1))
                continue
            del kept[0]
        return kept[0]

    def _too_old(self, following: int, now: float) -> bool:
        """Return whether a checkpoint, which covers the time up to ``following``, is too old."""
        return now - self.time_of(following) >= self.keep_seconds

    def _named(self, form: re.Pattern[str]) -> list[int]:
        try:
            names = [form.fullmatch(name) for name in self._disk.listdir(self.path)]
        except OSError as error:
            raise _unavailable(self.path, error) from error
        return [int(match[1]) for match in names if match is not None]

    def _note_scrub(self, lsn: int) -> None:
        """Record a scrub in the folder, so that errors can mention it even after a restart."""
        before = self._named(_SCRUBBED)
        self._disk.close(self._disk.open(self._note_of(lsn), create=True))
        for old in before:
            if old < lsn:
                self._disk.unlink(self._note_of(old))

    def _note_of(self, lsn: int) -> Path:
        return self.path / f"{lsn:020d}.scrubbed"

    def _sweep(self) -> None:
        for name in self._disk.listdir(self.path):
            if name.endswith(_TEMPORARY):
                self._disk.unlink(self.path / name)


class CheckpointWriter:
    """A checkpoint in progress: ``capture`` with the lock held until done, then ``finish``."""

    def __init__(
        self,
        manager: CheckpointManager,
        heap: Heap,
        disk: Disk,
        cold_body: Callable[[int], bytes] | None,
    ) -> None:
        self._manager = manager
        self.captured = self.finished = False
        self.failure: Exception | None = None
        self._finishing = threading.Lock()
        self._thread: threading.Thread | None = None
        self.lsn = 0
        self._image = ImageWriter(heap, manager.path / "checkpoint.tmp", disk, cold_body=cold_body)

    @property
    def bytes_written(self) -> int:
        """How many bytes were written to the file."""
        return self._image.bytes_written

    def capture(
        self, seconds: float, lsn: int, now: float, tombstones: list[tuple[int, int]]
    ) -> bool:
        """Capture a slice of the heap; return whether all of it is captured."""
        self._refuse_if_failed()
        try:
            self.captured = self._image.capture(seconds, lsn, now, tombstones)
        except OSError as error:
            raise _unavailable(self._manager.path, error) from error
        if self.captured:
            self.lsn = lsn
            self._image.name = self._manager.path_of(lsn)
        return self.captured

    def finish(self) -> int:
        """Make the file durable and rename it, without the lock. Further calls do nothing."""
        with self._finishing:
            if not self.finished:
                self._refuse_if_failed()
                try:
                    self._image.finish()
                except OSError as error:  # never retried: what a failed sync lost stays lost
                    self.failure = _unavailable(self._manager.path, error)
                    raise self.failure from error
                self.finished = True
        return self.lsn

    def finish_in_background(self, finish: Callable[[], None]) -> None:
        """Finish in a thread, which only writes and waits for the disk."""

        def run() -> None:
            try:
                finish()
            except Exception as error:  # reported by the next slice
                self.failure = error

        self._thread = threading.Thread(target=run, name="memoryspace-checkpoint", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Return when nothing is being finished in the background."""
        if self._thread is not None:
            self._thread.join()

    def abandon(self) -> None:
        """Give up this checkpoint; the others stay."""
        with self._finishing:  # not while another thread writes to the file
            if self.failure is None and not self.finished:
                self.failure = StoreUnavailable("this checkpoint was abandoned; write another one")
            self._image.abandon()

    def _refuse_if_failed(self) -> None:
        if self.failure is not None:
            raise self.failure


def _unavailable(path: Path, error: OSError) -> StoreUnavailable:
    return StoreUnavailable(
        f"a checkpoint in {path} could not be written or read ({error}); nothing was lost, the "
        "journal holds everything: free disk space or repair the disk and try again"
    )
