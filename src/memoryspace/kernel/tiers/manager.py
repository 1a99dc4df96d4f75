"""``TieredMemoryManager``: a hot heap over a cold storage engine.

Every object has its row in the table, hot or cold, so references, collection, expiry and search
know one population. What moves is the body: ``Mover`` says how, ``ColdTier`` what is kept where.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal

from ...errors import InvalidInput, StoreError
from ...events import EventStream
from ..durable.checkpoints import CheckpointManager
from ..durable.folder import Durability
from ..durable.journal import WriteAheadLog
from ..gc.collectors import GarbageCollector, TimeToLiveCollector
from ..gc.policies import GCPolicy
from ..heap.allocators import Allocator
from ..heap.drafts import NewObject
from ..heap.lower_tier import LowerTier
from ..heap.object import MemoryObject
from ..heap.table import NOT_HOT, SLOT_MASK
from ..index.searching import Retriever
from ..locks import ReadWriteLock
from ..manager import Hit, MemoryManager
from .cold import ColdStorage, RamColdStorage
from .cold_tier import ColdTier
from .curves import HitRate, MissRatioCurve
from .mover import Mover
from .pager import PAGE_SIZE, PageTable
from .tiering import Tiering, WritePolicy
from .writeback import WriteBack

logger = logging.getLogger(__name__)


class TieredMemoryManager(MemoryManager):
    """A ``MemoryManager`` whose heap is the hot tier.

    ``cold_store`` holds what does not fit (default: beside the journal if there is a folder, else
    in RAM). ``paging_strategy`` chooses who is demoted; at least ``hot_reserve_ratio`` of the heap
    is made free at once. ``write_back`` writes cold copies later: by a thread every
    ``flush_interval`` seconds, or at once when more than ``max_dirty`` objects wait;
    ``write_through`` writes them with the store. At most ``promotion_batch_size`` of the objects
    that one ``retrieve`` finds in the cold tier are promoted.

    Unlike its parent it collects by default only what has expired: what does not fit is demoted,
    not lost. A pinned object is shielded from collection, not from demotion.
    """

    def __init__(
        self,
        hot_capacity: int,
        *,
        cold_store: ColdStorage | None = None,
        hot_reserve_ratio: float = 0.25,
        max_hot_objects: int | None = None,
        page_size: int = PAGE_SIZE,
        max_pages: int | None = None,
        paging_strategy: str = "arc",
        write_policy: WritePolicy = "write_back",
        promotion_batch_size: int = 1,
        max_dirty: int = 4096,
        flush_interval: float | None = 1.0,
        curve: MissRatioCurve | None = None,
        allocator: Allocator | None = None,
        collectors: Sequence[GarbageCollector] | None = None,
        retriever: Retriever | Literal["sparse"] | None = "sparse",
        policies: Sequence[GCPolicy] = (),
        wal: WriteAheadLog | None = None,
        checkpoint_manager: CheckpointManager | None = None,
        folder: str | PathLike[str] | None = None,
        durability: Durability | None = None,
        quotas: Mapping[str, int] | None = None,
        default_quota: int | None = None,
        budget: int | None = None,
        pause: float = 0.001,
        lock: ReadWriteLock | None = None,
        events: EventStream | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if wal is not None and cold_store is None:
            raise InvalidInput("a journal needs a cold_store that outlives the process too")
        self.tiering = Tiering(
            hot_reserve_ratio=hot_reserve_ratio,
            max_hot_objects=max_hot_objects,
            page_size=page_size,
            max_pages=max_pages,
            paging_strategy=paging_strategy,
            write_policy=write_policy,
            promotion_batch_size=promotion_batch_size,
            max_dirty=max_dirty,
        )
        self.curve = curve
        self._owns_cold = cold_store is None
        self._cold = cold_store
        self._flusher: WriteBack | None = None
        self._flushing = threading.Lock()  # taken before ``writing``
        try:
            super().__init__(
                hot_capacity,
                allocator=allocator,
                collectors=(TimeToLiveCollector(),) if collectors is None else collectors,
                retriever=retriever,
                policies=policies,
                wal=wal,
                checkpoint_manager=checkpoint_manager,
                folder=folder,
                durability=durability,
                quotas=quotas,
                default_quota=default_quota,
                budget=budget,
                pause=pause,
                lock=lock,
                events=events,
                clock=clock,
            )
        except BaseException:
            if self._owns_cold and self._cold is not None:
                self._cold.close()
            raise
        if flush_interval is not None and write_policy == "write_back":
            self._flusher = WriteBack(self, flush_interval)

    # -- opening and closing -----------------------------------------------------------------------

    def fits(self, objects: Sequence[NewObject]) -> bool:
        """Tell whether objects could be stored without making room by collecting others."""
        return not self._has_limits or super().fits(objects)

    def has_room(self, sizes: Iterable[int]) -> bool:
        """Tell whether there is room for bodies: the cold tier takes what the heap does not."""
        return True

    def open_lower_tier(self) -> LowerTier:
        """Open the cold tier, unless one was handed in."""
        if self._cold is None:
            folder = self._folder
            self._cold = RamColdStorage() if folder is None else folder.open_cold()
        tier = ColdTier(self._cold)
        self.mover = Mover(tier, self.tiering, self.events, self.curve)
        return tier

    def prepare(self) -> None:
        """Let both tiers follow the heap before anything is recovered."""
        super().prepare()
        self.mover.follow(self.heap)

    def close(self) -> None:
        """Write what is dirty to the cold tier, then close."""
        if self._flusher is not None:
            self._flusher.stop()
        super().close()

    def let_go(self) -> None:
        """Write what is dirty, and give back what was opened here."""
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
                    self.cold.close()  # before others may have the folder
            finally:
                super().let_go()

    # -- reading -----------------------------------------------------------------------------------

    def load(self, object_id: str) -> MemoryObject:
        """Return an object, counting a use; a cold one is promoted."""
        with self.writing:
            slot = self.slot(object_id)
            table = self.heap.table
            body = self.mover.use(slot)
            table.uses[slot] += 1
            table.accessed[slot] = self.clock()
            found = self.heap.object(slot, body)
        self.events.emit("load", id=found.id, size=found.size)
        return found

    def bodies(self, slots: Sequence[int]) -> list[bytes]:
        """Return the bytes of several objects, counting a use of each; promote the first ones."""
        self.expect(len(slots))
        return self.mover.use_many(slots, self.clock())

    def _hits(self, found: list[tuple[int, float]]) -> list[Hit]:
        """Hot and cold were ranked together; the cold ones are read in one go."""
        slots = [handle & SLOT_MASK for handle, _ in found]
        return [
            Hit(self.heap.object(slot, body), score)
            for slot, body, (_, score) in zip(slots, self.bodies(slots), found, strict=True)
        ]

    def tier_of(self, object_id: str) -> Literal["hot", "cold"]:
        """Tell where an object's body is now."""
        with self.reading:
            address = self.heap.table.address[self.slot(object_id)]
            return "cold" if address == NOT_HOT else "hot"

    # -- moving ------------------------------------------------------------------------------------

    def promote(self, object_ids: Sequence[str]) -> int:
        """Bring cold objects into the heap before they are asked for; return how many came."""
        with self.writing:
            return self.mover.promote([self.slot(object_id) for object_id in object_ids])

    def demote(self, enough: Callable[[], bool]) -> None:
        """Move bodies to the cold tier until there is room, and the reserve besides."""
        self.mover.demote(enough)

    def demote_objects(self, object_ids: Sequence[str]) -> None:
        """Move these objects to the cold tier now."""
        with self.writing:
            self.mover.demote_these([self.slot(object_id) for object_id in object_ids])

    def flush_dirty(self) -> None:
        """Write a cold copy of everything that has none."""
        while True:
            with self.writing:
                if not self.mover.write_some():
                    return

    def flush_some(self) -> None:
        """Write some cold copies; others may work while the engine does."""
        with self._flushing:
            with self.writing:
                if self._closed:
                    return
                batch = self.mover.owed()
            self.mover.tier.write(batch)
            with self.writing:
                if not self._closed:
                    self.mover.note_written(batch)

    def drain(self) -> None:
        """Return when no batch is being written that was owed before this call."""
        with self._flushing:
            pass

    def look_after(self, *, now: bool = False) -> None:
        """Do what is due, write as the policy says, and keep the limits of the hot tier."""
        super().look_after(now=now)
        self.mover.settle(purge=self.checkpoint_manager is None)

    def needs_time(self) -> bool:
        """Tell whether the next ``look_after`` may take a while."""
        return super().needs_time() or self.mover.is_due(bury=self.checkpoint_manager is None)

    # -- figures -----------------------------------------------------------------------------------

    @property
    def cold(self) -> ColdStorage:
        """The cold tier."""
        assert self._cold is not None  # opened by open_lower_tier
        return self._cold

    @property
    def pager(self) -> PageTable:
        """Who is in the hot tier."""
        return self.mover.pager

    @property
    def hit_rate(self) -> HitRate:
        """How often an object that was asked for was hot."""
        return self.mover.hit_rate

    @property
    def write_policy(self) -> WritePolicy:
        """When cold copies are written."""
        return self.tiering.write_policy

    @property
    def max_hot_objects(self) -> int | None:
        """How many objects may be hot."""
        return self.tiering.max_hot_objects

    @property
    def hot_reserve_ratio(self) -> float:
        """How much of the heap is made free at once."""
        return self.tiering.hot_reserve_ratio

    @property
    def promotion_batch_size(self) -> int:
        """How many of the cold objects that one ``retrieve`` finds are promoted."""
        return self.tiering.promotion_batch_size

    @property
    def max_dirty(self) -> int:
        """How many objects may wait for their cold copy."""
        return self.tiering.max_dirty

    @property
    def promotions(self) -> int:
        """How often a body came into the heap from the cold tier."""
        return self.mover.promotions

    @property
    def demotions(self) -> int:
        """How often a body left the heap for the cold tier."""
        return self.mover.demotions

    @property
    def promotion_failures(self) -> int:
        """How often there was no room for a body in the heap."""
        return self.mover.promotion_failures

    @property
    def demotion_failures(self) -> int:
        """How often the cold tier could not be written."""
        return self.mover.demotion_failures

    def stats(self) -> dict[str, Any]:
        """Return the figures of this moment, of both tiers."""
        with self.reading:
            mover, pager = self.mover, self.mover.pager
            return {
                **super().stats(),
                "hot_objects": len(pager),
                "cold_items": self.heap.table.live - len(pager),
                "hot_hits": mover.hit_rate.hits,
                "cold_hits": mover.hit_rate.misses,
                "hit_rate": mover.hit_rate.rate,
                "promotions": mover.promotions,
                "demotions": mover.demotions,
                "promotion_failures": mover.promotion_failures,
                "demotion_failures": mover.demotion_failures,
                "page_faults": pager.stats.page_faults,
                "page_evictions": pager.stats.evictions,
                "page_writes": pager.stats.writes,
                "dirty": pager.dirty_count,
                "write_policy": self.tiering.write_policy,
            }

    def check(self) -> None:
        """Verify every invariant, also that no body is in neither tier."""
        super().check()
        with self.writing:
            self.mover.check()
