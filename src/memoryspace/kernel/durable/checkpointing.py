"""``Checkpointing``: writes checkpoints in slices and drops what older ones no longer need.

The heap is captured with the lock of the space held, one slice at a time. The file is then made
durable without the lock, by the caller that waits for the checkpoint or by a background thread.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from ...errors import InvalidInput
from ...events import EventStream
from ..heap.heap import Heap
from ..heap.lower_tier import LowerTier
from ..locks import Side
from ..options import EngineOptions
from .checkpoints import CheckpointManager, CheckpointWriter
from .journal import WriteAheadLog

logger = logging.getLogger(__name__)


class CheckpointedSpace(Protocol):
    """What a checkpoint needs of a space. An ``Engine`` has all of it."""

    heap: Heap
    lower_tier: LowerTier
    options: EngineOptions
    wal: WriteAheadLog | None
    checkpoint_manager: CheckpointManager | None
    events: EventStream
    clock: Callable[[], float]
    writing: Side

    def require_open(self) -> None:
        """Raise ``InvalidInput`` if the space is closed."""


class Checkpointing:
    """The checkpoint in progress. Call ``complete``, ``renew`` and ``finish`` without the lock of
    the space, everything else with it."""

    def __init__(self, space: CheckpointedSpace) -> None:
        self._space = space
        self.writer: CheckpointWriter | None = None  # in progress
        self.last_lsn = 0  # of the newest checkpoint
        self.held = 0  # how many readers need what older checkpoints hold

    def begin_if_due(self) -> None:
        """Start a checkpoint if the journal has grown enough since the last one."""
        space, limit = self._space, self._space.options.checkpoint_bytes
        if limit is None or space.wal is None or space.checkpoint_manager is None:
            return
        if self.writer is None and space.wal.bytes_since(self.last_lsn) >= limit:
            self.begin()

    def begin(self) -> CheckpointWriter:
        """Start a checkpoint."""
        if self._space.checkpoint_manager is None:
            raise InvalidInput("this space has no checkpoint manager; open it in a folder")
        self._space.require_open()  # the folder of a closed space may be in use elsewhere
        self.writer = self._space.checkpoint_manager.begin(self._space.heap)
        return self.writer

    def advance(self) -> None:
        """Continue a checkpoint that no caller waits for; a thread syncs the file."""
        writer = self.writer
        assert writer is not None
        if not writer.captured:
            self.capture(writer)
            if writer.captured:
                writer.finish_in_background(lambda: self.finish(writer))
        elif writer.failure is not None:
            self.drop(writer)
            logger.warning("a checkpoint failed; nothing is lost: %s", writer.failure)
            self._space.events.emit("checkpoint_failed", error=writer.failure)
        elif writer.finished:
            self.conclude(writer)

    def complete(self) -> int:
        """Finish the checkpoint in progress, or a new one; return its lsn."""
        writing = self._space.writing
        with writing:
            if self.writer is not None and self.writer.failure is not None:
                self.drop(self.writer)  # it failed in the background
            writer = self.begin() if self.writer is None else self.writer
        while not writer.captured:
            with writing:
                if not writer.captured:
                    self.capture(writer)
        try:
            self.finish(writer)
        except BaseException:
            with writing:
                self.drop(writer)
            raise
        with writing:
            self.conclude(writer)
        return writer.lsn

    def renew(self) -> int:
        """Write a checkpoint that begins after this call; return its lsn.

        One in progress may have captured objects that were freed since: they are holes in it, but
        their bytes are in the file.
        """
        with self._space.writing:
            is_in_progress = self.writer is not None
        if is_in_progress:
            self.complete()
        return self.complete()

    def capture(self, writer: CheckpointWriter) -> None:
        """Capture a slice of the heap."""
        space = self._space
        try:
            writer.capture(
                space.options.pause, space.heap.lsn, space.clock(), space.lower_tier.tombstones
            )
        except BaseException:
            self.drop(writer)
            raise

    def finish(self, writer: CheckpointWriter) -> None:
        """Make a captured checkpoint durable, after the cold copies that it relies on."""
        self._space.lower_tier.sync()
        writer.finish()

    def conclude(self, writer: CheckpointWriter) -> None:
        """Note that a checkpoint is durable and drop what only older ones need."""
        if self.writer is not writer:
            return  # another thread was first
        self.writer = None
        self.last_lsn = writer.lsn
        self._drop_older()
        self._space.events.emit("checkpoint", lsn=writer.lsn, bytes=writer.bytes_written)

    def drop(self, writer: CheckpointWriter) -> None:
        """Abandon a checkpoint that failed; the next one starts from the beginning."""
        if self.writer is writer:
            self.writer = None
        writer.abandon()

    def abandon(self) -> None:
        """Stop the checkpoint in progress; older ones stay."""
        if self.writer is not None:
            self.writer.wait()
            self.writer.abandon()
            self.writer = None

    def _drop_older(self) -> None:
        """Drop what no kept checkpoint needs any more, unless somebody still reads it."""
        space = self._space
        if self.held:
            return  # the next checkpoint drops it
        assert space.checkpoint_manager is not None
        oldest = space.checkpoint_manager.prune(space.clock())
        if space.wal is not None and oldest:
            space.wal.truncate(oldest + 1)
        space.lower_tier.purge(oldest)
