"""``TieredMemoryManager``: a hot heap over a cold storage engine.

Every object has its row in the table, hot or cold, so references, collection, expiry and search
know one population. What moves is the body. The invariant: *a body is in the heap, or the cold tier
holds a copy of exactly these bytes* (flag ``COLD``), whatever fails in between. So a demotion
writes the cold copy first and drops the hot one afterwards; a promotion leaves the cold copy where
it is, and the next demotion of the same bytes costs nothing.

A cold copy is named by the stamp of its write, which never comes again. Copies of objects that were
freed stay until no checkpoint that is kept can ask for them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal

from ..errors import CorruptData, InvalidInput, OutOfSpace, StoreError
from ..events import EventStream
from .allocators import Allocator
from .checkpoints import CheckpointManager, CheckpointWriter
from .cold import ColdStorage, RamColdStorage, open_cold
from .collectors import GarbageCollector, TimeToLiveCollector
from .curves import HitRate, MissRatioCurve
from .engine import Bodies
from .heap import STAMP_BITS
from .journal import WriteAheadLog
from .locks import ReadWriteLock
from .manager import Hit, MemoryManager
from .object import MemoryObject
from .opening import Durability
from .ops import Op
from .pager import PageTable
from .policies import GCPolicy
from .searching import Retriever
from .table import COLD, NOT_HOT, RECOVERED, SLOT_MASK
from .writeback import WriteBack

logger = logging.getLogger(__name__)

_BATCH = 256  # bodies written to the cold tier in one transaction

WritePolicy = Literal["write_back", "write_through"]


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
        page_size: int = 256,
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
        if not 0 <= hot_reserve_ratio < 1:
            raise InvalidInput(f"hot_reserve_ratio must be from 0 to below 1: {hot_reserve_ratio}")
        if write_policy not in ("write_back", "write_through"):
            raise InvalidInput(
                f"write_policy must be 'write_back' or 'write_through', got {write_policy!r}"
            )
        for name, number in (("promotion_batch_size", promotion_batch_size),
                             ("max_dirty", max_dirty)):  # fmt: skip
            if number < 1:
                raise InvalidInput(f"{name} must be 1 or more, got {number}")
        if wal is not None and cold_store is None:
            raise InvalidInput("a journal needs a cold_store that outlives the process too")
        self.write_policy = write_policy
        self.hot_reserve_ratio = hot_reserve_ratio
        self.max_hot_objects = max_hot_objects
        self.promotion_batch_size = promotion_batch_size
        self.max_dirty = max_dirty
        self._most_dirty = max_dirty if write_policy == "write_back" else 0
        self.pager = PageTable(page_size, paging_strategy, max_pages)
        self.curve = curve
        self.hit_rate = HitRate()
        self.promotions = self.demotions = 0
        self.promotion_failures = self.demotion_failures = 0
        self._unborn: list[int] = []  # stamps written to the cold tier and not journalled yet
        self._just_written: dict[int, bytes] = {}  # what went to the cold tier unseen, by stamp
        self._owns_cold = cold_store is None
        self._cold = cold_store
        self._flusher: WriteBack | None = None
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

    def prepare(self) -> None:
        """Open the cold tier, unless it is open, and follow the heap."""
        self.pager = self.pager.empty_copy()
        if self._cold is None:
            self._cold = self._open_cold()
        self.heap.body_of = self.body
        self.heap.on_stored.append(self._arrived)
        self.heap.on_freed.append(self._left)
        self.heap.on_rewritten.append(self._rewritten)

    def _open_cold(self) -> ColdStorage:
        return RamColdStorage() if self._folder is None else open_cold(self._folder.cold_path)

    @property
    def cold(self) -> ColdStorage:
        """The cold tier."""
        assert self._cold is not None  # opened by prepare
        return self._cold

    def _recover(self) -> None:
        self._recovering = True
        super()._recover()
        self._recovering = False
        for slot in self.heap.table.living():
            self.heap.table.flags[slot] |= RECOVERED
        if self.wal is not None:
            unborn = list(self.cold.keys((self.heap.lsn + 1) << STAMP_BITS))
            self.cold.delete_many(unborn)  # their changes were lost: the stamps will come again

    def close(self) -> None:
        """Write what is dirty to the cold tier, then close."""
        if self._flusher is not None:
            self._flusher.stop()
        super().close()

    def let_go(self) -> None:
        """Write what is dirty, and give back what was opened here."""
        try:
            self.flush_dirty()
            self.bury(self.heap.lsn if self.checkpoint_manager is None else 0)
        except StoreError as error:
            if self.wal is None:
                raise
            logger.warning("the cold tier was not brought up to date: %s", error)
        finally:
            try:
                super().let_go()
            finally:
                if self._owns_cold:
                    self.cold.close()

    # -- reading -----------------------------------------------------------------------------------

    def body(self, slot: int) -> bytes:
        """Return an object's bytes from whichever tier has them."""
        if self.heap.table.address[slot] != NOT_HOT:
            return self.heap.read(slot)
        body = self._just_written.get(self.heap.table.stamp[slot])
        return self._cold_bodies([slot])[0] if body is None else body

    def _cold_bodies(self, slots: Sequence[int]) -> list[bytes]:
        """Read from the cold tier; a body that it has lost is damage, like one it cannot read."""
        stamps = [self.heap.table.stamp[slot] for slot in slots]
        found = self.cold.load_many(stamps)
        for slot, stamp in zip(slots, stamps, strict=True):
            if stamp not in found:
                raise CorruptData(
                    f"object {self.heap.id_of(slot)!r}: the cold tier {self.cold.place} has lost "
                    f"its bytes (key {stamp}); restore it from a backup, or free the object"
                )
        return [found[stamp] for stamp in stamps]

    def load(self, object_id: str) -> MemoryObject:
        """Return an object, counting a use; a cold one is promoted."""
        with self.writing:
            slot = self.slot(object_id)
            table = self.heap.table
            body = self._use(slot)
            table.uses[slot] += 1
            table.accessed[slot] = self.clock()
            found = self.heap.object(slot, body)
        self.events.emit("load", id=found.id, size=found.size)
        return found

    def tier_of(self, object_id: str) -> Literal["hot", "cold"]:
        """Tell where an object's body is now."""
        with self.reading:
            address = self.heap.table.address[self.slot(object_id)]
            return "cold" if address == NOT_HOT else "hot"

    def _use(self, slot: int) -> bytes:
        if self._note_use(slot):
            self.pager.touch(slot)
            return self.heap.read(slot)
        body = self._cold_bodies([slot])[0]
        self._promote(slot, body)
        return body

    def _note_use(self, slot: int) -> bool:
        """Count a hit or a miss; tell whether it was a hit."""
        hit = self.heap.table.address[slot] != NOT_HOT
        self.hit_rate.record(hit)
        if self.curve is not None:
            self.curve.record(slot, self.heap.table.size[slot])
        return hit

    def _hits(self, found: list[tuple[int, float]]) -> list[Hit]:
        """Hot and cold were ranked together; the cold ones are read in one go."""
        slots = [handle & SLOT_MASK for handle, _ in found]
        return [
            Hit(self.heap.object(slot, body), score)
            for slot, body, (_, score) in zip(slots, self.bodies(slots), found, strict=True)
        ]

    def bodies(self, slots: Sequence[int]) -> list[bytes]:
        """Return the bytes of several objects, counting a use of each; promote the first ones."""
        table, now = self.heap.table, self.clock()
        cold = [slot for slot in slots if not self._note_use(slot)]
        found = dict(zip(cold, self._cold_bodies(cold), strict=True))
        for slot in slots:
            table.uses[slot] += 1
            table.accessed[slot] = now
            if slot not in found:
                self.pager.touch(slot)
        bodies = [found[slot] if slot in found else self.heap.read(slot) for slot in slots]
        for slot in cold[: self.promotion_batch_size]:
            self._promote(slot, found[slot])
        return bodies

    # -- moving ------------------------------------------------------------------------------------

    def promote(self, object_ids: Sequence[str]) -> int:
        """Bring cold objects into the heap before they are asked for; return how many came."""
        with self.writing:
            table = self.heap.table
            slots = [self.slot(object_id) for object_id in object_ids]
            cold = [slot for slot in dict.fromkeys(slots) if table.address[slot] == NOT_HOT]
            before = self.promotions
            for slot, body in zip(cold, self._cold_bodies(cold), strict=True):
                self._promote(slot, body, fault=False)
            return self.promotions - before

    def demote(self, enough: Callable[[], bool]) -> None:
        """Move bodies to the cold tier until there is room, and the reserve besides."""
        space = self.heap.space
        reserve = int(self.hot_reserve_ratio * space.capacity)
        while len(self.pager) and not (enough() and space.available() >= reserve):
            self._demote_some(min(_BATCH, max(1, len(self.pager) // 8)))

    def demote_objects(self, object_ids: Sequence[str]) -> None:
        """Move these objects to the cold tier now."""
        with self.writing:
            table = self.heap.table
            slots = [self.slot(object_id) for object_id in object_ids]
            hot = [slot for slot in dict.fromkeys(slots) if table.address[slot] != NOT_HOT]
            self._write(hot)
            for slot in hot:
                self.pager.remove(slot)
                self._evict(slot)

    def flush_dirty(self) -> None:
        """Write a cold copy of everything that has none."""
        while True:
            with self.writing:
                if not self._write(self.pager.dirty_keys(_BATCH)):
                    return

    def flush_some(self) -> None:
        """Write some cold copies; others may work while the engine does."""
        with self.writing:
            if self._closed:
                return
            self._delete_unborn()
            batch = self._unwritten(self.pager.dirty_keys(_BATCH))
        if batch:
            self.cold.save_many([(stamp, body) for _, _, stamp, body in batch])
        with self.writing:
            for slot, handle, stamp, _ in batch:
                if self._closed:
                    return
                if self.heap.table.slot_of(handle) == slot and self.heap.table.stamp[slot] == stamp:
                    self._written(slot)
                else:  # freed or rewritten meanwhile
                    self.graves.append((self.heap.lsn, stamp))

    def _demote_some(self, count: int) -> None:
        """Choose who goes, make sure that the cold tier has them, then drop the hot copies."""
        victims = [self.pager.evict() for _ in range(min(count, len(self.pager)))]
        self._send_cold([slot for slot in victims if slot is not None])

    def _send_cold(self, slots: Sequence[int]) -> None:
        """Write those who were chosen, then drop them; if that fails they stay where they were."""
        try:
            self._write(slots)
        except BaseException:
            for slot in slots:
                self.pager.put_back(slot, self.heap.table.size[slot])
            self.demotion_failures += len(slots)
            raise
        for slot in slots:
            self._evict(slot)

    def _evict(self, slot: int) -> None:
        self.heap.evict(slot)
        self.demotions += 1
        self.events.emit("demotion", slot=slot, size=self.heap.table.size[slot])

    def _promote(self, slot: int, body: bytes, *, fault: bool = True) -> None:
        """Give a body a hot copy if there is room, or if room can be made by demoting others."""
        space, size = self.heap.space, self.heap.space.block_size(len(body))
        try:
            if not self.pager.fits(len(body)) or size > space.capacity:
                raise OutOfSpace(f"an object of {len(body)} bytes is too big for the hot tier")
            self._place(slot, body, lambda: space.available() >= size)
        except (OutOfSpace, StoreError) as error:
            self.promotion_failures += 1
            self.pager.stats.page_faults += fault
            self.events.emit("promotion_failed", slot=slot, error=error)
            return
        self.pager.page_in(slot, len(body), fault=fault)
        self.promotions += 1
        self.events.emit("promotion", slot=slot, size=len(body))
        self._keep_limits(keep=slot)

    def _place(self, slot: int, body: bytes, enough: Callable[[], bool]) -> None:
        try:
            self.heap.place(slot, body)
        except OutOfSpace:
            self.demote(enough)
            try:
                self.heap.place(slot, body)
            except OutOfSpace:
                self.heap.compact()
                self.heap.place(slot, body)

    def _keep_limits(self, keep: int = -1) -> None:
        """Demote whoever is too many, by objects or by pages."""
        victims: list[int] = []
        while self._is_over() and (victim := self.pager.evict(skip=(keep,))) is not None:
            victims.append(victim)
        if not victims:
            return
        try:
            self._send_cold(victims)
        except StoreError as error:
            self.events.emit("demotion_failed", slot=victims[0], error=error)

    def _is_over(self) -> bool:
        most = self.max_hot_objects
        return bool(self.pager.over()) or (most is not None and len(self.pager) > most)

    def _write_as_policy_says(self) -> None:
        """Write-through leaves nothing dirty, write-back no more than ``max_dirty``."""
        try:
            while self.pager.dirty_count > self._most_dirty:
                self._write(self.pager.dirty_keys(_BATCH))
        except StoreError as error:  # the object is stored; it stays dirty and is tried again
            logger.warning("the cold tier could not be written: %s", error)
            self.demotion_failures += 1
            self.events.emit("demotion_failed", slot=-1, error=error)

    def _write(self, slots: Sequence[int]) -> int:
        """Make sure that the cold tier holds these bodies; return how many it had to get."""
        batch = self._unwritten(slots)
        self._delete_unborn()
        if batch:
            self.cold.save_many([(stamp, body) for _, _, stamp, body in batch])
        for slot, _, _, _ in batch:
            self._written(slot)
        return len(batch)

    def _unwritten(self, slots: Sequence[int]) -> list[tuple[int, int, int, bytes]]:
        table = self.heap.table
        return [
            (slot, table.handle[slot], table.stamp[slot], self.heap.read(slot))
            for slot in slots
            if not table.flags[slot] & COLD
        ]

    def _written(self, slot: int) -> None:
        self.heap.now_cold(slot)
        if self.pager.is_dirty(slot):
            self.pager.clear_dirty(slot)

    # -- following the heap ------------------------------------------------------------------------

    def _arrived(self, slot: int) -> None:
        table = self.heap.table
        if table.address[slot] != NOT_HOT:
            self.pager.add(slot, table.size[slot], dirty=not table.flags[slot] & COLD)

    def _left(self, slot: int) -> None:
        table = self.heap.table
        if self.pager.is_resident(slot) or self.pager.is_dirty(slot):
            self.pager.remove(slot)
        if self.curve is not None:
            self.curve.remove(slot)
        if table.flags[slot] & (COLD | RECOVERED) or self._recovering:
            self.graves.append((self.heap.lsn, table.stamp[slot]))

    def _rewritten(self, slot: int, old_stamp: int, old_flags: int) -> None:
        if old_flags & (COLD | RECOVERED) or self._recovering:
            self.graves.append((self.heap.lsn, old_stamp))
        size = self.heap.table.size[slot]
        if self.heap.table.address[slot] == NOT_HOT:
            if self.pager.is_resident(slot):
                self.pager.remove(slot)
        elif self.pager.is_resident(slot):
            self.pager.resize(slot, size)
            self.pager.mark_dirty(slot)
        else:
            self.pager.add(slot, size)

    def overflow(self, bodies: Bodies, total: int) -> list[int]:
        """What is too much for the heap at once goes to the cold tier before it is journalled."""
        self._delete_unborn()
        if not self._recovering:
            self._unborn = [stamp for stamp, _ in bodies]
        self.cold.save_many(bodies)
        if not self._recovering:
            self._just_written = dict(bodies)
        return [NOT_HOT] * len(bodies)

    def _apply(self, ops: Sequence[Op], addresses: Sequence[int]) -> None:
        """No body gets a stamp under which the cold tier still holds one that was never born."""
        if self._unborn and addresses and NOT_HOT not in addresses:
            try:
                self._delete_unborn()
            except BaseException:
                self.unplace(addresses)
                raise
        super()._apply(ops, addresses)
        if NOT_HOT in addresses:
            self._unborn = []

    def unplace(self, addresses: Sequence[int]) -> None:
        """The change will not happen; its stamps will come again, so its cold copies must go."""
        super().unplace(addresses)
        if NOT_HOT in addresses:
            self._just_written = {}
            try:
                self._delete_unborn()
            except StoreError as error:
                logger.warning("a cold copy is to be deleted before the next write: %s", error)

    def _delete_unborn(self) -> None:
        """Delete cold copies of a change that was never journalled."""
        if self._unborn:
            self.cold.delete_many(self._unborn)
            self._unborn = []

    def spill(self, bodies: list[tuple[int, bytes]]) -> None:
        """Recovered bodies that do not fit into the heap go to the cold tier."""
        stamps = self.heap.table.stamp
        self.cold.save_many([(stamps[slot], body) for slot, body in bodies])
        for slot, _ in bodies:
            self.heap.now_cold(slot)

    def finish_checkpoint(self, writer: CheckpointWriter) -> None:
        """The cold copies that a checkpoint relies on are safe before it is."""
        self.cold.sync()
        super().finish_checkpoint(writer)

    def bury(self, oldest: int) -> None:
        """Delete cold copies of objects that were freed before the oldest checkpoint."""
        dead = [stamp for lsn, stamp in self.graves if lsn <= oldest]
        if not dead:
            return
        try:
            self.cold.delete_many(dead)
        except StoreError as error:
            logger.warning("%d copies of the dead are to be deleted later: %s", len(dead), error)
            return
        self.graves = [grave for grave in self.graves if grave[0] > oldest]

    def look_after(self, *, now: bool = False) -> None:
        """Do what is due, write as the policy says, and keep the limits of the hot tier.

        Without checkpoints nobody can ask for the dead: their copies are deleted now and then.
        """
        super().look_after(now=now)
        if self._just_written:
            self._just_written = {}
        if self.pager.dirty_count > self._most_dirty:
            self._write_as_policy_says()
        if self.max_hot_objects is not None or self.pager.max_pages is not None:
            self._keep_limits()
        if self.checkpoint_manager is None and len(self.graves) >= _BATCH:
            self.bury(self.heap.lsn)

    # -- figures -----------------------------------------------------------------------------------

    def stats(self) -> dict[str, Any]:
        """Return the figures of this moment, of both tiers."""
        with self.reading:
            pages = self.pager.stats
            return {
                **super().stats(),
                "hot_objects": len(self.pager),
                "cold_items": self.heap.table.live - len(self.pager),
                "hot_hits": self.hit_rate.hits,
                "cold_hits": self.hit_rate.misses,
                "hit_rate": self.hit_rate.rate,
                "promotions": self.promotions,
                "demotions": self.demotions,
                "promotion_failures": self.promotion_failures,
                "demotion_failures": self.demotion_failures,
                "page_faults": pages.page_faults,
                "page_evictions": pages.evictions,
                "page_writes": pages.writes,
                "dirty": self.pager.dirty_count,
                "write_policy": self.write_policy,
            }

    def check(self) -> None:
        """Verify every invariant, also that no body is in neither tier."""
        super().check()
        with self.writing:
            table = self.heap.table
            self.pager.check()
            for slot in table.living():
                hot = table.address[slot] != NOT_HOT
                cold = bool(table.flags[slot] & COLD)
                assert hot == self.pager.is_resident(slot), f"slot {slot}: resident or not"
                assert self.pager.is_dirty(slot) == (not cold), f"slot {slot}: dirty or not"
                if cold:
                    body = self.cold.load(table.stamp[slot])
                    assert not hot or body == self.heap.read(slot), f"slot {slot}: two bodies"
