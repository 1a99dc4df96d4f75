"""``Reservations``: blocks for bodies that are about to be written.

When none are free, the order is: expire, collect, tidy up, demote (if there is a cold tier),
refuse. A refusal names who holds the space.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import TypeAlias

from ..errors import OutOfSpace
from .gc.scheduler import GCScheduler
from .heap.heap import Heap
from .heap.lower_tier import Bodies, LowerTier

Relief: TypeAlias = Callable[[Callable[[], bool]], None]  # makes room until told: it is enough

_TOP_HOLDERS = 3  # named when space is refused


class Reservations:
    """The room in a heap, and how more is made; ``demote`` moves bodies to a colder tier."""

    def __init__(
        self, heap: Heap, below: LowerTier, collecting: GCScheduler, demote: Relief
    ) -> None:
        self._heap = heap
        self._lower = below
        self._collecting = collecting
        self._demote = demote

    def make(self, bodies: Bodies) -> list[int]:
        """Return reserved blocks; under pressure: expire, collect, tidy up, demote, refuse."""
        return self._reserve(
            bodies, (self._collecting.expire, self._collecting.collect, self._demote)
        )

    def make_in_recovery(self, bodies: Bodies) -> list[int]:
        """Reserve blocks where nothing may be collected: what the journal frees, it frees."""
        return self._reserve(bodies, (self._demote,))

    def give_back(self, addresses: Sequence[int]) -> None:
        """Take back what was reserved: the change will not happen."""
        self._heap.release(addresses)
        self._lower.take_back(addresses)

    def _reserve(self, bodies: Bodies, reliefs: Sequence[Relief]) -> list[int]:
        sizes = [len(body) for _, body in bodies]
        try:
            return self._heap.reserve(sizes)
        except OutOfSpace:
            self._lower.wait()
            space, total = self._heap.space, sum(map(self._heap.space.block_size, sizes))
        if total > space.capacity:
            return self._overflow(bodies, total)

        def enough() -> bool:
            return space.available() >= total

        for relieve in reliefs:
            if not enough():
                relieve(enough)
            if enough():
                return self._reserve_tidily(sizes)
        raise OutOfSpace(self._refusal(total))

    def _overflow(self, bodies: Bodies, total: int) -> list[int]:
        """Find another place for bodies that the heap could not hold if it were empty."""
        addresses = self._lower.overflow(bodies)
        if addresses is None:
            raise OutOfSpace(self._refusal(total))
        return addresses

    def _reserve_tidily(self, sizes: Sequence[int]) -> list[int]:
        """Reserve what is free in total, sliding the blocks together if it is scattered."""
        try:
            return self._heap.reserve(sizes)
        except OutOfSpace:
            self._heap.compact()
            return self._heap.reserve(sizes)

    def _refusal(self, total: int) -> str:
        heap, space = self._heap, self._heap.space
        sizes = zip(heap.tenants.bytes, heap.tenants.names.values, strict=True)
        biggest = heapq.nlargest(_TOP_HOLDERS, (pair for pair in sizes if pair[0]))
        named = ", ".join(f"{tenant or 'no tenant'}: {size}" for size, tenant in biggest)
        return (
            f"no room for {total} bytes: {space.available()} of {space.capacity} are free; "
            f"{heap.table.live} objects hold the rest, {heap.held_bytes} bytes of them are roots "
            f"or pinned (bytes by tenant: {named or 'none'}); free, unpin or unroot some, or "
            "choose a bigger capacity"
        )
