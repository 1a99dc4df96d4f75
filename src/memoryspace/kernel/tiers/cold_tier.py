"""``ColdTier``: the bodies that a cold storage engine holds below a heap.

A cold copy is named by the stamp of its write, which is never used twice. Copies of freed objects
stay until no kept checkpoint can need them. A copy that is written before its change is journalled
is *pending* until the change has happened. If it does not happen, its stamp is used again, so the
copy is deleted before anything else is written.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from itertools import chain, islice, takewhile
from typing import NamedTuple

from ...errors import CorruptData, StoreError
from ..heap.heap import STAMP_BITS, Heap
from ..heap.lower_tier import Bodies, LowerTier
from ..heap.table import COLD, NOT_HOT, RECOVERED
from .cold import ColdStorage

logger = logging.getLogger(__name__)

_BATCH = 1024  # copies deleted in one transaction


class MissingCopy(NamedTuple):
    """A body that the cold tier does not hold yet."""

    slot: int
    handle: int
    stamp: int
    body: bytes


class ColdTier(LowerTier):
    """The cold tier of a space. The caller closes ``storage``."""

    def __init__(self, storage: ColdStorage) -> None:
        super().__init__()
        self.storage = storage
        self.recovering = False
        self.just_written: dict[int, bytes] = {}  # bodies written by ``overflow``, by stamp

    def follow(self, heap: Heap) -> None:
        """Start over below another heap, and provide the bodies that are not in it."""
        super().follow(heap)
        self.recovering = True
        heap.body_of = self.body

    def recovered(self, *, journalled: bool) -> None:
        """Delete copies of changes that were lost with the end of the journal."""
        heap = self._heap
        self.recovering = False
        for slot in heap.table.living():
            heap.table.flags[slot] |= RECOVERED
        if journalled:
            pending = list(self.storage.keys((heap.lsn + 1) << STAMP_BITS))
            self.storage.delete_many(pending)  # their stamps will be used again

    # -- reading -----------------------------------------------------------------------------------

    def body(self, slot: int) -> bytes:
        """Return an object's bytes from either tier."""
        if self._heap.table.address[slot] != NOT_HOT:
            return self._heap.read(slot)
        body = self.just_written.get(self._heap.table.stamp[slot])
        return self.load([slot])[0] if body is None else body

    def load(self, slots: Sequence[int]) -> list[bytes]:
        """Read cold copies; ``CorruptData`` if one is missing or damaged."""
        if not slots:
            return []
        self.wait()
        stamps = [self._heap.table.stamp[slot] for slot in slots]
        found = self.storage.load_many(stamps)
        for slot, stamp in zip(slots, stamps, strict=True):
            if stamp not in found:
                raise CorruptData(
                    f"object {self._heap.id_of(slot)!r}: the cold tier {self.storage.place} has "
                    f"lost its bytes (key {stamp}); restore it from a backup, or free the object"
                )
        return [found[stamp] for stamp in stamps]

    # -- writing -----------------------------------------------------------------------------------

    def missing(self, slots: Sequence[int]) -> list[MissingCopy]:
        """Return those bodies of slots that have no cold copy."""
        table = self._heap.table
        return [
            MissingCopy(slot, table.handle[slot], table.stamp[slot], self._heap.read(slot))
            for slot in slots
            if not table.flags[slot] & COLD
        ]

    def write(self, batch: Sequence[MissingCopy]) -> None:
        """Write cold copies, without the lock. The caller notes them as ``now_cold``."""
        if batch:
            self.storage.save_many([(each.stamp, each.body) for each in batch])

    def overflow(self, bodies: Bodies) -> list[int] | None:
        """Take bodies that even an empty heap could not hold, before they are journalled."""
        self.wait()
        self.delete_pending()
        if not self.recovering:
            self.pending = [stamp for stamp, _ in bodies]
        self.storage.save_many(bodies)
        if not self.recovering:
            self.just_written = dict(bodies)
        return [NOT_HOT] * len(bodies)

    def spill(self, bodies: list[tuple[int, bytes]]) -> None:
        """Take recovered bodies that do not fit into the heap."""
        stamps = self._heap.table.stamp
        self.storage.save_many([(stamps[slot], body) for slot, body in bodies])
        for slot, _ in bodies:
            self._heap.now_cold(slot)

    def sync(self) -> None:
        """Make the cold copies that a checkpoint relies on durable."""
        self.storage.sync()

    # -- pending and freed copies ------------------------------------------------------------------

    def admit(self, addresses: Sequence[int]) -> None:
        """Delete pending copies before their stamps are used again."""
        if addresses and NOT_HOT not in addresses:
            self.delete_pending()

    def commit(self, addresses: Sequence[int]) -> None:
        """Note that the change of the pending copies has happened."""
        if NOT_HOT in addresses:
            self.pending = []

    def take_back(self, addresses: Sequence[int]) -> None:
        """Delete the pending copies: their change will not happen, and its stamps come again."""
        if NOT_HOT not in addresses:
            return
        self.just_written = {}
        try:
            self.delete_pending()
        except StoreError as error:
            logger.warning("a pending cold copy is deleted before the next write: %s", error)

    def delete_pending(self) -> None:
        """Delete cold copies of a change that was never journalled."""
        if self.pending:
            self.wait()
            self.storage.delete_many(self.pending)
            self.pending = []

    def purge(self, oldest: int) -> None:
        """Delete cold copies of objects that were freed before the oldest checkpoint."""
        freed = [stamp for lsn, stamp in self.tombstones if lsn <= oldest]
        if not freed:
            return
        try:
            self.storage.delete_many(freed)
        except StoreError as error:
            logger.warning("%d stale cold copies are deleted later: %s", len(freed), error)
            return
        self.tombstones = [tombstone for tombstone in self.tombstones if tombstone[0] > oldest]

    def needed(self, oldest: int) -> Iterable[int]:
        """Return the stamps of living objects, and of those freed after the oldest checkpoint."""
        self.delete_pending()
        table = self._heap.table
        stamps, living = table.stamp[: table.rows], table.living()  # copies, for later iteration
        return chain(
            (stamps[slot] for slot in living),
            [stamp for lsn, stamp in self.tombstones if lsn > oldest],
        )

    def scrub(self, needed: Iterable[int], before: int) -> None:
        """Delete every body that is not needed, even without a tombstone; rewrite the files."""
        needed = frozenset(needed)
        old = takewhile(lambda stamp: stamp < before, self.storage.keys())
        freed = (stamp for stamp in old if stamp not in needed)
        while batch := list(islice(freed, _BATCH)):
            self.storage.delete_many(batch)
        self.storage.scrub()
