"""A process that stores numbered records until it is killed, and reports each one.

It first stores records in batches, which is faster, then one by one. Each line reports how many
records are acknowledged, up to which record everything is on disk, and how long the oldest unsynced
record has been acknowledged.
"""

from __future__ import annotations

import time
from collections import deque
from typing import NamedTuple

from msgspec import Struct

from ...kernel import Durability, MemoryManager, NewObject
from .children import order_of, say

CAPACITY = 1 << 28  # bytes of address space; memory is committed on use
BATCH = 64
SEGMENT = 1 << 20  # bytes per journal file


class Order(Struct):
    """Where and how to write, the first record, and the size of the initial batch."""

    folder: str
    sync: str
    checkpoint_bytes: int
    first: int
    at_once: int


class Acknowledged(NamedTuple):
    """The content of a line; the numbers are counts of records."""

    records: int
    durable: int
    waiting: float  # seconds the oldest record has been waiting for the disk


def text_of(number: int) -> str:
    """Return the text of a record, with a length and content of its own."""
    return f"record {number} " + "abcdefghij"[number % 10] * (20 + number * 7919 % 300)


def open_space(order: Order) -> MemoryManager:
    """Open the space and recover its content."""
    how = Durability(
        sync=order.sync, checkpoint_bytes=order.checkpoint_bytes, segment_bytes=SEGMENT
    )
    return MemoryManager(CAPACITY, folder=order.folder, durability=how, retriever=None)


class Writer:
    """Stores records and reports them."""

    def __init__(self, space: MemoryManager, first: int) -> None:
        self.space, self.next = space, first
        self._waiting: deque[tuple[int, int, float]] = deque()  # lsn, records so far, time
        self._durable = first  # everything found at the start counts as safe

    def store(self, count: int) -> None:
        """Store this many records in one step."""
        numbers = range(self.next, self.next + count)
        self.space.store_many([NewObject({"n": n, "text": text_of(n)}, root=True) for n in numbers])
        now = time.monotonic()
        self.next += count
        self._waiting.append((self.space.last_lsn, self.next, now))
        assert self.space.wal is not None  # it has a folder
        while self._waiting and self._waiting[0][0] <= self.space.wal.durable_lsn:
            self._durable = self._waiting.popleft()[1]
        oldest = self._waiting[0][2] if self._waiting else now
        say(Acknowledged(self.next, self._durable, now - oldest))


def main() -> None:
    """Write until killed."""
    order = order_of(Order)
    writer = Writer(open_space(order), order.first)
    say(Acknowledged(order.first, order.first, 0.0))
    while writer.next < order.first + order.at_once:
        writer.store(min(BATCH, order.first + order.at_once - writer.next))
    while True:
        writer.store(1)


if __name__ == "__main__":
    main()
