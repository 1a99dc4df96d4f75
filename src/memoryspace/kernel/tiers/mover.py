"""``Mover``: moves bodies between the heap and the cold tier.

The invariant: *a body is in the heap, or the cold tier holds a copy of exactly these bytes* (flag
``COLD``), whatever fails in between. So a demotion writes the cold copy before it drops the hot
one. A promotion keeps the cold copy, so the next demotion of the same bytes costs nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from ...errors import OutOfSpace, StoreError
from ...events import EventStream
from ..heap.heap import Heap
from ..heap.table import COLD, NOT_HOT, RECOVERED
from .cold_tier import ColdTier, MissingCopy
from .curves import HitRate
from .tiering import Tiering

logger = logging.getLogger(__name__)

_BATCH = 256  # bodies written to the cold tier in one transaction


class Mover:
    """Promotes, demotes and writes bodies. Call it with the lock of the space held."""

    def __init__(
        self,
        tier: ColdTier,
        tiering: Tiering,
        events: EventStream,
    ) -> None:
        self.tier = tier
        self._tiering = tiering
        self._most_dirty = tiering.most_dirty
        self._has_limits = tiering.max_hot_objects is not None or tiering.max_pages is not None
        self._events = events
        self._curve = tiering.curve
        self.pager = tiering.page_table()
        self.hit_rate = HitRate()
        self.promotions = self.demotions = 0
        self.promotion_failures = self.demotion_failures = 0

    def follow(self, heap: Heap) -> None:
        """Start over with another heap, which is still empty, and listen to its changes."""
        self._heap = heap
        self.pager = self._tiering.page_table()
        heap.on_stored.append(self._on_stored)
        heap.on_freed.append(self._on_freed)
        heap.on_rewritten.append(self._on_rewritten)

    # -- using -------------------------------------------------------------------------------------

    def use(self, slot: int) -> bytes:
        """Return the bytes of an object that is used; promote it if it is cold."""
        if self._heap.table.address[slot] != NOT_HOT:
            self._note_use(slot)
            self.pager.touch(slot)
            return self._heap.read(slot)
        body = self.tier.load([slot])[0]
        self._note_use(slot)
        self._promote(slot, body)
        return body

    def use_many(self, slots: Sequence[int], now: float) -> list[bytes]:
        """Return the bytes of several objects, reading cold ones at once; promote the first."""
        table = self._heap.table
        cold = [slot for slot in slots if table.address[slot] == NOT_HOT]
        found = dict(zip(cold, self.tier.load(cold), strict=True))
        for slot in slots:
            self._note_use(slot)
            table.uses[slot] += 1
            table.accessed[slot] = now
            if slot not in found:
                self.pager.touch(slot)
        bodies = [found[slot] if slot in found else self._heap.read(slot) for slot in slots]
        for slot in cold[: self._tiering.promotion_batch_size]:
            self._promote(slot, found[slot])
        return bodies

    def _note_use(self, slot: int) -> None:
        """Count a hit or a miss."""
        self.hit_rate.record(self._heap.table.address[slot] != NOT_HOT)
        if self._curve is not None:
            self._curve.record(slot, self._heap.table.size[slot])

    # -- promotion ---------------------------------------------------------------------------------

    def promote(self, slots: Sequence[int]) -> int:
        """Move cold objects into the heap before they are used; return how many moved."""
        address, before = self._heap.table.address, self.promotions
        cold = [slot for slot in dict.fromkeys(slots) if address[slot] == NOT_HOT]
        for slot, body in zip(cold, self.tier.load(cold), strict=True):
            self._promote(slot, body, fault=False)
        return self.promotions - before

    def _promote(self, slot: int, body: bytes, *, fault: bool = True) -> None:
        """Give a body a hot copy if it fits, demoting others if need be."""
        space, size = self._heap.space, self._heap.space.block_size(len(body))
        try:
            if not self.pager.fits(len(body)) or size > space.capacity:
                raise OutOfSpace(f"an object of {len(body)} bytes is too big for the hot tier")
            self._place(slot, body, lambda: space.available() >= size)
        except (OutOfSpace, StoreError) as error:
            self.promotion_failures += 1
            self.pager.stats.page_faults += fault
            self._events.emit("promotion_failed", slot=slot, error=error)
            return
        self.pager.page_in(slot, len(body), fault=fault)
        self.promotions += 1
        self._events.emit("promotion", slot=slot, size=len(body))
        self._enforce_limits(keep=slot)

    def _place(self, slot: int, body: bytes, enough: Callable[[], bool]) -> None:
        try:
            self._heap.place(slot, body)
        except OutOfSpace:
            self.demote(enough)
            try:
                self._heap.place(slot, body)
            except OutOfSpace:
                self._heap.compact()
                self._heap.place(slot, body)

    # -- demotion ----------------------------------------------------------------------------------

    def demote(self, enough: Callable[[], bool]) -> None:
        """Move bodies to the cold tier until ``enough()``, and until the reserve is free."""
        space = self._heap.space
        reserve = int(self._tiering.hot_reserve_ratio * space.capacity)
        while len(self.pager) and not (enough() and space.available() >= reserve):
            self._demote_some(min(_BATCH, max(1, len(self.pager) // 8)))

    def demote_these(self, slots: Sequence[int]) -> None:
        """Move these objects to the cold tier."""
        address = self._heap.table.address
        hot = [slot for slot in dict.fromkeys(slots) if address[slot] != NOT_HOT]
        self._write(hot)
        for slot in hot:
            self.pager.remove(slot)
            self._evict(slot)

    def _demote_some(self, count: int) -> None:
        """Choose victims, write their cold copies, then drop the hot ones."""
        victims = [self.pager.evict() for _ in range(min(count, len(self.pager)))]
        self._send_cold([slot for slot in victims if slot is not None])

    def _send_cold(self, slots: Sequence[int]) -> None:
        """Write cold copies of victims, then drop the hot ones. After an error they stay hot."""
        try:
            self._write(slots)
        except BaseException:
            for slot in slots:
                self.pager.put_back(slot, self._heap.table.size[slot])
            self.demotion_failures += len(slots)
            raise
        for slot in slots:
            self._evict(slot)

    def _evict(self, slot: int) -> None:
        self._heap.evict(slot)
        self.demotions += 1
        self._events.emit("demotion", slot=slot, size=self._heap.table.size[slot])

    def _enforce_limits(self, keep: int = -1) -> None:
        """Demote objects beyond the limits on objects and pages."""
        victims: list[int] = []
        while self._is_over() and (victim := self.pager.evict(skip=(keep,))) is not None:
            victims.append(victim)
        if not victims:
            return
        try:
            self._send_cold(victims)
        except StoreError as error:
            self._events.emit("demotion_failed", slot=victims[0], error=error)

    def _is_over(self) -> bool:
        most = self._tiering.max_hot_objects
        return bool(self.pager.over()) or (most is not None and len(self.pager) > most)

    # -- cold copies -------------------------------------------------------------------------------

    def settle(self, *, purge: bool) -> None:
        """Write cold copies as the policy says and enforce the hot tier's limits, after a change.

        ``purge``: there is no past, so cold copies of freed objects are deleted now and then.
        """
        tier = self.tier
        if tier.just_written:
            tier.just_written = {}
        if self.pager.dirty_count > self._most_dirty:
            self._write_as_policy_says()
        if self._has_limits:
            self._enforce_limits()
        if purge and len(tier.tombstones) >= _BATCH:
            tier.purge(self._heap.lsn)

    def is_due(self, *, purge: bool) -> bool:
        """Return whether ``settle`` would write to the cold tier now."""
        if self.pager.dirty_count > self._most_dirty:
            return True
        if purge and len(self.tier.tombstones) >= _BATCH:
            return True
        return self._has_limits and self._is_over()

    def write_some(self) -> int:
        """Write a batch of missing cold copies; return how many, 0 if none is missing."""
        return self._write(self.pager.dirty_keys(_BATCH))

    def missing(self) -> list[MissingCopy]:
        """Return a batch for ``ColdTier.write``. Call ``note_written`` afterwards."""
        self.tier.delete_pending()
        return self.tier.missing(self.pager.dirty_keys(_BATCH))

    def note_written(self, batch: Sequence[MissingCopy]) -> None:
        """Note which objects have a cold copy now; those that changed meanwhile do not."""
        table = self._heap.table
        for slot, handle, stamp, _ in batch:
            if table.slot_of(handle) == slot and table.stamp[slot] == stamp:
                self._note_cold(slot)
            else:  # freed or rewritten meanwhile
                self.tier.tombstones.append((self._heap.lsn, stamp))

    def _write_as_policy_says(self) -> None:
        """Write until nothing is dirty (write-through), or at most ``max_dirty`` (write-back)."""
        try:
            while self.pager.dirty_count > self._most_dirty:
                self.write_some()
        except StoreError as error:  # the object is stored; it stays dirty and is retried
            logger.warning("the cold tier could not be written: %s", error)
            self.demotion_failures += 1
            self._events.emit("demotion_failed", slot=-1, error=error)

    def _write(self, slots: Sequence[int]) -> int:
        """Make sure that the cold tier holds these bodies; return how many were missing."""
        batch = self.tier.missing(slots)
        self.tier.delete_pending()
        self.tier.write(batch)
        for each in batch:
            self._note_cold(each.slot)
        return len(batch)

    def _note_cold(self, slot: int) -> None:
        self._heap.now_cold(slot)
        if self.pager.is_dirty(slot):
            self.pager.clear_dirty(slot)

    # -- following the heap ------------------------------------------------------------------------

    def _on_stored(self, slot: int) -> None:
        table = self._heap.table
        if table.address[slot] != NOT_HOT:
            self.pager.add(slot, table.size[slot], dirty=not table.flags[slot] & COLD)

    def _on_freed(self, slot: int) -> None:
        table = self._heap.table
        if self.pager.is_resident(slot) or self.pager.is_dirty(slot):
            self.pager.remove(slot)
        if self._curve is not None:
            self._curve.remove(slot)
        if table.flags[slot] & (COLD | RECOVERED) or self.tier.recovering:
            self.tier.tombstones.append((self._heap.lsn, table.stamp[slot]))

    def _on_rewritten(self, slot: int, old_stamp: int, old_flags: int) -> None:
        if old_flags & (COLD | RECOVERED) or self.tier.recovering:
            self.tier.tombstones.append((self._heap.lsn, old_stamp))
        size = self._heap.table.size[slot]
        if self._heap.table.address[slot] == NOT_HOT:
            if self.pager.is_resident(slot):
                self.pager.remove(slot)
        elif self.pager.is_resident(slot):
            self.pager.resize(slot, size)
            self.pager.mark_dirty(slot)
        else:
            self.pager.add(slot, size)

    def check(self) -> None:
        """Verify that every body is in a tier, and that the page table knows which."""
        table = self._heap.table
        self.pager.check()
        for slot in table.living():
            hot = table.address[slot] != NOT_HOT
            cold = bool(table.flags[slot] & COLD)
            assert hot == self.pager.is_resident(slot), f"slot {slot}: resident or not"
            assert self.pager.is_dirty(slot) == (not cold), f"slot {slot}: dirty or not"
            if cold:
                (body,) = self.tier.load([slot])
                assert not hot or body == self._heap.read(slot), f"slot {slot}: two bodies"
