"""The folder of a space: its layout, its options, and how it is opened.

LOCK            the process that has the folder open
journal/        the write-ahead log
checkpoints/    images of the heap
cold/           the cold tier, if there is one
index/          the index as of the last close; a hint that may be deleted
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from ...errors import StoreUnavailable
from ...events import EventStream
from ..tiers.cold import ColdStorage, open_cold
from .checkpoints import CheckpointManager
from .disk import Disk
from .journal import ALWAYS, SyncPolicy, WriteAheadLog, as_policy
from .ownership import FolderLock


@dataclass(frozen=True)
class Durability:
    """How a space is kept on disk.

    Args:
        sync: When the journal is synced: ``"always"``, ``"group:5"`` (milliseconds) or ``"os"``.
        keep: How many checkpoints stay. The space can be restored as far back as the oldest.
        keep_seconds: Keep the checkpoints of this many seconds as well.
        checkpoint_bytes: Write a checkpoint after this many bytes of journal.
        segment_bytes: The size of a journal file.
        salvage: Open a journal that lost records in the middle, or a cold tier that lost pages,
            with what is left. Reading an object whose bytes are gone raises ``CorruptData``.

    Example::

        space = MemoryManager(1 << 20, folder="space", durability=Durability(sync="group:5"))
    """

    sync: SyncPolicy | str = ALWAYS
    keep: int = 2
    keep_seconds: float = 0.0
    checkpoint_bytes: int = 64 << 20
    segment_bytes: int = 8 << 20
    salvage: bool = False

    @property
    def syncs_always(self) -> bool:
        """Whether the journal is synced before a change is acknowledged."""
        return as_policy(self.sync) == ALWAYS


class SpaceFolder:
    """An open folder: its lock, its journal and its checkpoints."""

    def __init__(
        self,
        folder: str | PathLike[str],
        durability: Durability,
        *,
        disk: Disk | None = None,
        events: EventStream | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.path = Path(folder)
        self._salvage = durability.salvage
        disk = Disk() if disk is None else disk
        try:
            disk.mkdir(self.path)
        except OSError as error:
            raise StoreUnavailable(
                f"the folder {self.path} cannot be created ({error}); choose another one"
            ) from error
        self._lock = FolderLock(self.path)
        try:
            self.checkpoints = CheckpointManager(
                self.path / "checkpoints",
                keep=durability.keep,
                keep_seconds=durability.keep_seconds,
                disk=disk,
            )
            self.wal = WriteAheadLog(
                self.path / "journal",
                sync=durability.sync,
                segment_bytes=durability.segment_bytes,
                salvage=durability.salvage,
                clock=clock,
                events=events,
                disk=disk,
            )
        except BaseException:
            self._lock.close()
            raise

    def open_cold(self) -> ColdStorage:
        """Open the cold tier. The caller closes it."""
        return open_cold(self.path / "cold", salvage=self._salvage)

    @property
    def index_path(self) -> Path:
        """Where the index is saved."""
        return self.path / "index"

    def close(self) -> None:
        """Close the journal and release the folder."""
        try:
            self.wal.close()
        finally:
            self._lock.close()


@dataclass(frozen=True)
class SpaceFiles:
    """The journal and the checkpoints of a space, and the folder if it was opened for them."""

    wal: WriteAheadLog | None = None
    checkpoints: CheckpointManager | None = None
    folder: SpaceFolder | None = None

    @classmethod
    def in_folder(cls, folder: SpaceFolder) -> SpaceFiles:
        """Return the files in a folder that was opened."""
        return cls(folder.wal, folder.checkpoints, folder)
