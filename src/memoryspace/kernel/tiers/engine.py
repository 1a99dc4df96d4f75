"""``TieredEngine``: an engine whose heap is the hot tier above a cold storage engine.

Every object has its row in the table, hot or cold, so references, collection, expiry and search
treat both alike. Only bodies move: ``Mover`` moves them, ``ColdTier`` tracks the cold copies.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence

from ...errors import StoreError
from ..durable.folder import SpaceFiles
from ..engine import Engine
from ..heap.drafts import NewObject
from ..heap.lower_tier import LowerTier
from ..heap.table import NOT_HOT
from ..options import EngineOptions
from .cold import ColdStorage, RamColdStorage
from .cold_tier import ColdTier
from .mover import Mover
from .tiering import Tiering
from .writeback import WriteBack

logger = logging.getLogger(__name__)


class TieredEngine(Engine):
    """An engine with a cold tier. ``cold_store=None`` opens one, in the folder or in RAM."""

    def __init__(
        self,
        options: EngineOptions,
        files: SpaceFiles,
        tiering: Tiering,
        cold_store: ColdStorage | None,
    ) -> None:
        self.tiering = tiering
        self._owns_cold = cold_store is None
        self._cold = cold_store
        self._flushing = threading.Lock()  # taken before ``writing``
        self.flusher: WriteBack | None = None
        super().__init__(options, files)
        if tiering.flush_interval is not None and tiering.write_policy == "write_back":
            self.flusher = WriteBack(self, tiering.flush_interval)

    @property
    def cold(self) -> ColdStorage:
        """The cold tier's storage engine."""
        assert self._cold is not None  # opened by open_lower_tier
        return self._cold

    # -- opening and closing -----------------------------------------------------------------------

    def open_lower_tier(self) -> LowerTier:
        """Open the cold tier, unless one was passed in."""
        if self._cold is None:
            self._cold = RamColdStorage() if self.folder is None else self.folder.open_cold()
        tier = ColdTier(self._cold)
        self.mover = Mover(tier, self.tiering, self.events)
        return tier

    def prepare(self) -> None:
        """Let both tiers follow the heap before anything is recovered."""
        super().prepare()
        self.mover.follow(self.heap)

    def close(self) -> None:
        """Write every missing cold copy, then close."""
        if self.flusher is not None:
            self.flusher.stop()
        super().close()

    def release(self) -> None:
        """Write every missing cold copy, then close what was opened here."""
        try:
            self.flush_dirty()
            self.lower_tier.purge(self.heap.lsn if self.checkpoint_manager is None else 0)
        except StoreError as error:
            if self.wal is None:
                raise
            logger.warning("the cold tier was not brought up to date: %s", error)
        finally:
            try:
                if self._owns_cold:
                    self.cold.close()  # before another process can open the folder
            finally:
                super().release()

    def abandon_files(self) -> None:
        """Close the cold tier and the folder if the space could not be opened."""
        try:
            if self._owns_cold and self._cold is not None:
                self._cold.close()
        finally:
            super().abandon_files()

    # -- free space --------------------------------------------------------------------------------

    def fits(self, objects: Sequence[NewObject]) -> bool:
        """Return whether objects can be stored without collecting others."""
        return not self.has_limits or super().fits(objects)

    def has_space_for(self, sizes: Iterable[int]) -> bool:
        """Return ``True``: the cold tier takes what the heap does not."""
        return True

    def demote(self, enough: Callable[[], bool]) -> None:
        """Move bodies to the cold tier until there is enough free space, and the reserve."""
        self.mover.demote(enough)

    # -- reading and writing -----------------------------------------------------------------------

    def bodies(self, slots: Sequence[int]) -> list[bytes]:
        """Return the bytes of several objects, count a use of each, promote the first cold ones."""
        self.expect(len(slots))
        return self.mover.use_many(slots, self.clock())

    def raw(self, slot: int) -> bytes | None:
        """Return an object's bytes from either tier; those of a cold one after a checksum."""
        if self.heap.table.address[slot] != NOT_HOT:
            return self.heap.read(slot)
        return self.cold.raw(self.heap.table.stamp[slot])

    def needs_time(self) -> bool:
        """Return whether the next ``do_upkeep`` may take a while."""
        return super().needs_time() or self.mover.is_due(purge=self.checkpoint_manager is None)

    def do_upkeep(self, *, now: bool = False) -> None:
        """Do what is due, write cold copies as the policy says, keep the hot tier's limits."""
        super().do_upkeep(now=now)
        self.mover.settle(purge=self.checkpoint_manager is None)

    def flush_dirty(self) -> None:
        """Write every missing cold copy."""
        while True:
            with self.writing:
                if not self.mover.write_some():
                    return

    def flush_some(self) -> None:
        """Write a batch of missing cold copies; others may work while the engine writes."""
        with self._flushing:
            with self.writing:
                if self._closed:
                    return
                batch = self.mover.missing()
            self.mover.tier.write(batch)
            with self.writing:
                if not self._closed:
                    self.mover.note_written(batch)

    def drain(self) -> None:
        """Return when every batch that was begun before this call is written."""
        with self._flushing:
            pass

    def check(self) -> None:
        """Verify every invariant, also that each body is in at least one tier."""
        super().check()
        with self.writing:
            self.mover.check()
