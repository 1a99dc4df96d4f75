"""``ColdTier``: the bodies that a cold storage engine holds below a heap.

A cold copy is named by the stamp of its write, which never comes again. Copies of objects that were
freed stay until no checkpoint that is kept can ask for them. A copy that was written before its
change was journalled is *pending* until the change has happened: if it does not happen the stamp
will come again, so the copy is deleted before anything else is written.
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

_BATCH = 1024  # copies of the dead deleted in one transaction


class Owed(NamedTuple):
    """A body that the cold tier has yet to get."""

    slot: int
    handle: int
    stamp: int
    body: bytes


class ColdTier(LowerTier):
    """What stands below the heap of a tiered space; ``storage`` stays whose it was."""

    def __init__(self, storage: ColdStorage) -> None:
        super().__init__()
        self.storage = storage
        self.recovering = False
        self.just_written: dict[int, bytes] = {}  # what went to the cold tier unseen, by stamp

    def follow(self, heap: Heap) -> None:
        """Begin below another heap, and be asked for the bodies that are not in it."""
        super().follow(heap)
        self.recovering = True
        heap.body_of = self.body

    def recovered(self, *, journalled: bool) -> None:
        """Delete copies whose changes were lost with the end of the journal."""
        heap = self._heap
        self.recovering = False
        for slot in heap.table.living():
            heap.table.flags[slot] |= RECOVERED
        if journalled:
            pending = list(self.storage.keys((heap.lsn + 1) << STAMP_BITS))
            self.storage.delete_many(pending)  # the stamps will come again

    # -- reading -----------------------------------------------------------------------------------

    def body(self, slot: int) -> bytes:
        """Return an object's bytes from whichever tier has them."""
        if self._heap.table.address[slot] != NOT_HOT:
            return self._heap.read(slot)
        body = self.just_written.get(self._heap.table.stamp[slot])
        return self.load([slot])[0] if body is None else body

    def load(self, slots: Sequence[int]) -> list[bytes]:
        """Read cold copies; one that the engine has lost is damage, like one it cannot read."""
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

    def owed(self, slots: Sequence[int]) -> list[Owed]:
        """Return the bodies, of these, that have no cold copy."""
        table = self._heap.table
        return [
            Owed(slot, table.handle[slot], table.stamp[slot], self._heap.read(slot))
            for slot in slots
            if not table.flags[slot] & COLD
        ]

    def write(self, batch: Sequence[Owed]) -> None:
        """Write cold copies; needs no lock. Whoever calls notes which are ``now_cold`` then."""
        if batch:
            self.storage.save_many([(each.stamp, each.body) for each in batch])

    def overflow(self, bodies: Bodies) -> list[int] | None:
        """What is too much for the heap at once comes here before it is journalled."""
        self.wait()
        self.delete_pending()
        if not self.recovering:
            self.pending = [stamp for stamp, _ in bodies]
        self.storage.save_many(bodies)
        if not self.recovering:
            self.just_written = dict(bodies)
        return [NOT_HOT] * len(bodies)

    def spill(self, bodies: list[tuple[int, bytes]]) -> None:
        """Recovered bodies that do not fit into the heap come here."""
        stamps = self._heap.table.stamp
        self.storage.save_many([(stamps[slot], body) for slot, body in bodies])
        for slot, _ in bodies:
            self._heap.now_cold(slot)

    def sync(self) -> None:
        """The cold copies that a checkpoint relies on are safe before it is."""
        self.storage.sync()

    # -- births and deaths -------------------------------------------------------------------------

    def admit(self, addresses: Sequence[int]) -> None:
        """No body gets a stamp under which there still is one that was never born."""
        if addresses and NOT_HOT not in addresses:
            self.delete_pending()

    def commit(self, addresses: Sequence[int]) -> None:
        """The change that these copies were written for has happened."""
        if NOT_HOT in addresses:
            self.pending = []

    def take_back(self, addresses: Sequence[int]) -> None:
        """The change will not happen; its stamps will come again, so its cold copies must go."""
        if NOT_HOT not in addresses:
            return
        self.just_written = {}
        try:
            self.delete_pending()
        except StoreError as error:
            logger.warning("a cold copy is to be deleted before the next write: %s", error)

    def delete_pending(self) -> None:
        """Delete cold copies of a change that was never journalled."""
        if self.pending:
            self.wait()
            self.storage.delete_many(self.pending)
            self.pending = []

    def purge(self, oldest: int) -> None:
        """Delete cold copies of objects that were freed before the oldest checkpoint."""
        dead = [stamp for lsn, stamp in self.tombstones if lsn <= oldest]
        if not dead:
            return
        try:
            self.storage.delete_many(dead)
        except StoreError as error:
            logger.warning("%d copies of the dead are to be deleted later: %s", len(dead), error)
            return
        self.tombstones = [tombstone for tombstone in self.tombstones if tombstone[0] > oldest]

    def needed(self, oldest: int) -> Iterable[int]:
        """Return the stamps of the living, and of those who died after the oldest checkpoint."""
        self.delete_pending()
        table = self._heap.table
        stamps, living = table.stamp[: table.rows], table.living()  # copies, to be gone through
        return chain(
            (stamps[slot] for slot in living),
            [stamp for lsn, stamp in self.tombstones if lsn > oldest],
        )

    def scrub(self, needed: Iterable[int], before: int) -> None:
        """Delete every body that is not needed, with or without a tombstone, and its traces."""
        needed = frozenset(needed)
        old = takewhile(lambda stamp: stamp < before, self.storage.keys())
        dead = (stamp for stamp in old if stamp not in needed)
        while batch := list(islice(dead, _BATCH)):
            self.storage.delete_many(batch)
        self.storage.scrub()
