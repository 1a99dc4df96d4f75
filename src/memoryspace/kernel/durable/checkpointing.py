"""``Imaging``: the checkpoint under way, from the first slice until older ones can be dropped.

Capturing is done under the lock of the space, a slice at a time. Making the file durable needs no
lock: it is done by whoever waits for the checkpoint, or, if nobody does, by a thread of its own.
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
from ..options import Options
from .checkpoints import CheckpointManager, CheckpointWriter
from .journal import WriteAheadLog

logger = logging.getLogger(__name__)


class Imaged(Protocol):
    """What a checkpoint needs of a space: an ``Engine`` has all of it."""

    heap: Heap
    lower_tier: LowerTier
    options: Options
    wal: WriteAheadLog | None
    checkpoint_manager: CheckpointManager | None
    events: EventStream
    clock: Callable[[], float]
    writing: Side

    def require_open(self) -> None:
        """Raise unless changes can be made."""


class Imaging:
    """The checkpoint of a space that is being written. ``complete``, ``renew`` and ``finish`` need
    no lock, everything else does."""

    def __init__(self, space: Imaged) -> None:
        self._space = space
        self.writer: CheckpointWriter | None = None  # under way
        self.last_lsn = 0  # of the newest checkpoint

    def begin_if_due(self) -> None:
        """Start to write a checkpoint if the journal has grown enough since the last one."""
        space, limit = self._space, self._space.options.checkpoint_bytes
        if limit is None or space.wal is None or space.checkpoint_manager is None:
            return
        if self.writer is None and space.wal.bytes_since(self.last_lsn) >= limit:
            self.begin()

    def begin(self) -> CheckpointWriter:
        """Start to write a checkpoint."""
        if self._space.checkpoint_manager is None:
            raise InvalidInput("this space has no checkpoint manager; open it in a folder")
        self._space.require_open()  # a closed space's folder may be another's by now
        self.writer = self._space.checkpoint_manager.begin(self._space.heap)
        return self.writer

    def advance(self) -> None:
        """Go on with a checkpoint that nobody waits for: its fsync has a thread of its own."""
        writer = self.writer
        assert writer is not None
        if not writer.captured:
            self.capture(writer)
            if writer.captured:
                writer.finish_in_background(lambda: self.finish(writer))
        elif writer.failure is not None:
            self.drop(writer)
            logger.warning("a checkpoint failed, the journal goes on: %s", writer.failure)
            self._space.events.emit("checkpoint_failed", error=writer.failure)
        elif writer.finished:
            self.conclude(writer)

    def complete(self) -> int:
        """See the checkpoint under way, or a new one, to its end; return its lsn."""
        writing = self._space.writing
        with writing:
            if self.writer is not None and self.writer.failure is not None:
                self.drop(self.writer)  # it failed when nobody waited for it
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
        """See a checkpoint that was begun after this call to its end; return its lsn.

        One that is under way has taken in objects that were freed since: they are holes in it, but
        their bytes are there.
        """
        with self._space.writing:
            is_under_way = self.writer is not None
        if is_under_way:
            self.complete()
        return self.complete()

    def capture(self, writer: CheckpointWriter) -> None:
        """Let a checkpoint take in a slice of the heap."""
        space = self._space
        try:
            writer.capture(
                space.options.pause, space.heap.lsn, space.clock(), space.lower_tier.tombstones
            )
        except BaseException:
            self.drop(writer)
            raise

    def finish(self, writer: CheckpointWriter) -> None:
        """Make a captured checkpoint durable, and before it what it relies on."""
        self._space.lower_tier.sync()
        writer.finish()

    def conclude(self, writer: CheckpointWriter) -> None:
        """A checkpoint is safe: drop what only older ones need."""
        if self.writer is not writer:
            return  # another thread was first
        self.writer = None
        self.last_lsn = writer.lsn
        self._drop_older()
        self._space.events.emit("checkpoint", lsn=writer.lsn, bytes=writer.bytes_written)

    def drop(self, writer: CheckpointWriter) -> None:
        """Give up a checkpoint that failed; the next one starts anew."""
        if self.writer is writer:
            self.writer = None
        writer.abandon()

    def abandon(self) -> None:
        """Stop the checkpoint under way; those there were stay as they were."""
        if self.writer is not None:
            self.writer.wait()
            self.writer.abandon()
            self.writer = None

    def _drop_older(self) -> None:
        """Drop what no checkpoint that is kept needs any longer."""
        space = self._space
        assert space.checkpoint_manager is not None
        oldest = space.checkpoint_manager.prune(space.clock())
        if space.wal is not None and oldest:
            space.wal.truncate(oldest + 1)
        space.lower_tier.purge(oldest)
