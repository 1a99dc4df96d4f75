"""``LowerTier``: the interface of the tier below a heap, and the empty tier.

An engine asks its lower tier for three things: to take bodies that the heap cannot hold, to make
durable what a checkpoint relies on, and to delete what can no longer be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from .heap import Heap


class WouldWait(Exception):
    """Something would take longer than an event loop can spare; nothing of it was done."""


Bodies: TypeAlias = Sequence[tuple[int, bytes]]  # (stamp that the write will have, body)


class LowerTier:
    """Nothing: it holds no bodies and takes none."""

    def __init__(self) -> None:
        self.tombstones: list[tuple[int, int]] = []  # (freed at, stamp) of bodies still down there
        self.pending: list[int] = []  # stamps of bodies that came before their change is journalled
        self.may_wait = True  # if whoever holds the lock can wait for the disk

    def wait(self) -> None:
        """Raise ``WouldWait`` where nobody can wait: asked before the disk is, or a long time."""
        if not self.may_wait:
            raise WouldWait

    def follow(self, heap: Heap) -> None:
        """Start over below another heap, which is still empty."""
        self._heap = heap
        self.tombstones = []

    def recovered(self, *, journalled: bool) -> None:
        """Note that recovery has ended; changes follow."""

    def overflow(self, bodies: Bodies) -> list[int] | None:
        """Take bodies that even an empty heap could not hold, before they are journalled.

        Return placeholders for their addresses, or ``None`` if this tier does not take them.
        """
        return None

    def admit(self, addresses: Sequence[int]) -> None:
        """Prepare for a change with these blocks to be journalled; called if bodies are pending.

        If this raises, the change does not happen.
        """

    def commit(self, addresses: Sequence[int]) -> None:
        """Note that a change with these blocks has happened; called if bodies were pending."""

    def take_back(self, addresses: Sequence[int]) -> None:
        """Note that a change with these blocks will not happen."""

    def spill(self, bodies: list[tuple[int, bytes]]) -> None:
        """Place recovered bodies, by slot, when the heap is smaller than the image."""
        for slot, body in bodies:
            self._heap.place(slot, body)

    def sync(self) -> None:
        """Return when every body that was taken is durable."""

    def purge(self, oldest: int) -> None:
        """Delete bodies that no checkpoint from this lsn on can need."""

    def needed(self, oldest: int) -> Iterable[int]:
        """Return the stamps of all bodies that the space, or its past from this lsn on, has now.

        The result may be iterated later, without the lock.
        """
        return ()

    def scrub(self, needed: Iterable[int], before: int) -> None:
        """Erase all other bodies with stamps before ``before``; called without the lock."""
