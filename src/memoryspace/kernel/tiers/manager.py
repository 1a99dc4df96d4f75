"""``TieredMemoryManager``: a memory manager with a hot heap above a cold storage engine."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any, Literal

from ...errors import InvalidInput
from ..durable.checkpoints import CheckpointManager
from ..durable.folder import Durability
from ..durable.journal import WriteAheadLog
from ..gc.collectors import GarbageCollector, TimeToLiveCollector
from ..gc.policies import GCPolicy
from ..heap.allocators import Allocator
from ..heap.object import MemoryObject
from ..heap.table import NOT_HOT
from ..index.searching import Retriever
from ..manager import MemoryManager, open_files
from ..options import EngineOptions, Quotas, Runtime
from .cold import ColdStorage
from .curves import HitRate, MissRatioCurve
from .engine import TieredEngine
from .pager import PageTable
from .tiering import Tiering, WritePolicy


class TieredMemoryManager(MemoryManager):
    """A ``MemoryManager`` whose heap is the hot tier: what does not fit is demoted, not refused.

    By default it collects only what has expired. A pinned object is protected from collection, not
    from demotion.

    Args:
        hot_capacity: How many bytes the heap has.
        cold_store: Holds what does not fit into the heap. It stays open. By default a storage
            engine is opened in the ``folder``, or in RAM if there is none.
        tiering: How the two tiers share the objects. The seven keywords that follow are its
            fields; one that is passed takes precedence over ``tiering``.
        hot_reserve_ratio: See ``Tiering``.
        max_hot_objects: See ``Tiering``.
        page_size: See ``Tiering``.
        max_pages: See ``Tiering``.
        paging_strategy: See ``Tiering``.
        write_policy: See ``Tiering``.
        promotion_batch_size: See ``Tiering``.
        allocator: Places blocks in the heap.
        collectors: Decide which objects are freed (default: expired ones).
        retriever: The index behind ``retrieve``, over both tiers; ``None`` to go without.
        policies: Decide when a collection starts.
        wal: A journal that you opened, instead of a ``folder``; needs a ``cold_store``.
        checkpoint_manager: The checkpoints that go with ``wal``.
        folder: Where to keep the space on disk.
        durability: When the folder's files are synced, and how far back they go.
        quotas: Limits by tenant and on declared sizes.
        runtime: Clock, events, lock, and how long a slice of background work may take.

    Raises:
        InvalidInput: An option is out of range, or there is a ``wal`` without a ``cold_store``.
        FolderInUse: Another process has the folder open.
        CorruptData: The files are damaged and ``durability`` does not ask for salvage.

    Examples:
        >>> with TieredMemoryManager(1 << 20, paging_strategy="sieve") as space:
        ...     note = space.store({"text": "Ann is allergic to peanuts"})
    """

    engine: TieredEngine

    def __init__(
        self,
        hot_capacity: int,
        *,
        cold_store: ColdStorage | None = None,
        tiering: Tiering | None = None,
        hot_reserve_ratio: float | None = None,
        max_hot_objects: int | None = None,
        page_size: int | None = None,
        max_pages: int | None = None,
        paging_strategy: str | None = None,
        write_policy: WritePolicy | None = None,
        promotion_batch_size: int | None = None,
        allocator: Allocator | None = None,
        collectors: Sequence[GarbageCollector] | None = None,
        retriever: Retriever | Literal["sparse"] | None = "sparse",
        policies: Sequence[GCPolicy] = (),
        wal: WriteAheadLog | None = None,
        checkpoint_manager: CheckpointManager | None = None,
        folder: str | PathLike[str] | None = None,
        durability: Durability | None = None,
        quotas: Quotas | None = None,
        runtime: Runtime | None = None,
    ) -> None:
        if wal is not None and cold_store is None:
            raise InvalidInput("a wal needs a cold_store that survives the process as well")
        tiering = (Tiering() if tiering is None else tiering).overridden(
            hot_reserve_ratio=hot_reserve_ratio,
            max_hot_objects=max_hot_objects,
            page_size=page_size,
            max_pages=max_pages,
            paging_strategy=paging_strategy,
            write_policy=write_policy,
            promotion_batch_size=promotion_batch_size,
        )
        durability = Durability() if durability is None else durability
        options = EngineOptions(
            capacity=hot_capacity,
            allocator=allocator,
            collectors=tuple((TimeToLiveCollector(),) if collectors is None else collectors),
            policies=tuple(policies),
            retriever=retriever,
            quotas=Quotas() if quotas is None else quotas,
            runtime=(Runtime() if runtime is None else runtime).with_events(),
            checkpoint_bytes=durability.checkpoint_bytes,
        )
        files = open_files(options.runtime, folder, durability, wal, checkpoint_manager)
        self._run_on(TieredEngine(options, files, tiering, cold_store))

    # -- reading -----------------------------------------------------------------------------------

    def load(self, object_id: str) -> MemoryObject:
        """Return an object and count a use; promote it if it is cold."""
        engine = self.engine
        with engine.writing:
            slot = engine.slot(object_id)
            heap = engine.heap
            table = heap.table
            body = engine.mover.use(slot)
            table.uses[slot] += 1
            table.accessed[slot] = engine.clock()
            found = heap.object(slot, body)
        self.events.emit("load", id=found.id, size=found.size)
        return found

    def tier_of(self, object_id: str) -> Literal["hot", "cold"]:
        """Return which tier an object's body is in now."""
        engine = self.engine
        with engine.reading:
            address = engine.heap.table.address[engine.slot(object_id)]
            return "cold" if address == NOT_HOT else "hot"

    # -- moving ------------------------------------------------------------------------------------

    def promote(self, object_ids: Sequence[str]) -> int:
        """Move cold objects into the heap before they are needed; return how many moved."""
        engine = self.engine
        with engine.writing:
            return engine.mover.promote([engine.slot(object_id) for object_id in object_ids])

    def demote_objects(self, object_ids: Sequence[str]) -> None:
        """Move objects to the cold tier now."""
        engine = self.engine
        with engine.writing:
            engine.mover.demote_these([engine.slot(object_id) for object_id in object_ids])

    def flush_dirty(self) -> None:
        """Write every missing cold copy."""
        self.engine.flush_dirty()

    def flush_some(self) -> None:
        """Write a batch of missing cold copies; others may work meanwhile."""
        self.engine.flush_some()

    # -- figures -----------------------------------------------------------------------------------

    @property
    def tiering(self) -> Tiering:
        """How the two tiers share the objects."""
        return self.engine.tiering

    @property
    def cold(self) -> ColdStorage:
        """The cold tier's storage engine."""
        return self.engine.cold

    @property
    def pager(self) -> PageTable:
        """The page table of the hot tier."""
        return self.engine.mover.pager

    @property
    def hit_rate(self) -> HitRate:
        """How often an object was hot when it was used."""
        return self.engine.mover.hit_rate

    @property
    def curve(self) -> MissRatioCurve | None:
        """The estimate of the miss ratio of other hot capacities, if ``tiering`` has one."""
        return self.tiering.curve

    @property
    def write_policy(self) -> WritePolicy:
        """When cold copies are written."""
        return self.tiering.write_policy

    @property
    def max_hot_objects(self) -> int | None:
        """The most objects in the hot tier."""
        return self.tiering.max_hot_objects

    @property
    def hot_reserve_ratio(self) -> float:
        """The share of the heap that one demotion frees at least."""
        return self.tiering.hot_reserve_ratio

    @property
    def promotion_batch_size(self) -> int:
        """The most cold objects that one ``retrieve`` promotes."""
        return self.tiering.promotion_batch_size

    @property
    def max_dirty(self) -> int:
        """The most objects that may lack a cold copy."""
        return self.tiering.max_dirty

    @property
    def promotions(self) -> int:
        """How many bodies were moved from the cold tier into the heap."""
        return self.engine.mover.promotions

    @property
    def demotions(self) -> int:
        """How many bodies were moved from the heap to the cold tier."""
        return self.engine.mover.demotions

    @property
    def promotion_failures(self) -> int:
        """How many promotions failed for want of free space."""
        return self.engine.mover.promotion_failures

    @property
    def demotion_failures(self) -> int:
        """How many writes to the cold tier failed."""
        return self.engine.mover.demotion_failures

    def stats(self) -> dict[str, Any]:
        """Return the current figures of both tiers."""
        engine = self.engine
        with engine.reading:
            mover, pager = engine.mover, engine.mover.pager
            return {
                **super().stats(),
                "hot_objects": len(pager),
                "cold_items": engine.heap.table.live - len(pager),
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
