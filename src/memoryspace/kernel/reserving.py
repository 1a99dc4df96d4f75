"""``Reservations``: blocks for bodies that are about to be written.

When there is not enough free space, the order is: expire, collect, compact, demote (if there is a
cold tier), refuse. A refusal says which tenants hold the most.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import TypeAlias

from ..errors import OutOfSpace
from .gc.scheduler import GCScheduler
from .heap.heap import Heap
from .heap.lower_tier import Bodies, LowerTier

Relief: TypeAlias = Callable[[Callable[[], bool]], None]  # frees space until it is enough

_TOP_HOLDERS = 3  # tenants named in a refusal


class Reservations:
    """Reserves blocks and frees space for them; ``demote`` moves bodies to a colder tier."""

    def __init__(
        self, heap: Heap, lower_tier: LowerTier, collecting: GCScheduler, demote: Relief
    ) -> None:
        self._heap = heap
        self._lower = lower_tier
        self._collecting = collecting
        self._demote = demote

    def reserve(self, bodies: Bodies) -> list[int]:
        """Reserve blocks and return their addresses; ``OutOfSpace`` if they do not fit."""
        return self._reserve(
            bodies, (self._collecting.expire, self._collecting.collect, self._demote)
        )

    def reserve_in_recovery(self, bodies: Bodies) -> list[int]:
        """Reserve blocks without collecting: in recovery only the journal frees objects."""
        return self._reserve(bodies, (self._demote,))

    def release(self, addresses: Sequence[int]) -> None:
        """Release reserved blocks: the change will not happen."""
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
                return self._reserve_compacting(sizes)
        raise OutOfSpace(self._refusal(total))

    def _overflow(self, bodies: Bodies, total: int) -> list[int]:
        """Place bodies that even an empty heap could not hold in the lower tier."""
        addresses = self._lower.overflow(bodies)
        if addresses is None:
            raise OutOfSpace(self._refusal(total))
        return addresses

    def _reserve_compacting(self, sizes: Sequence[int]) -> list[int]:
        """Reserve blocks, compacting the heap if the free space is scattered."""
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
            f"no space for {total} bytes: {space.available()} of {space.capacity} are free; "
            f"{heap.table.live} objects hold the rest, {heap.held_bytes} bytes of them are roots "
            f"or pinned (bytes by tenant: {named or 'none'}); free, unpin or unroot some, or "
            "open the space with a bigger capacity"
        )
