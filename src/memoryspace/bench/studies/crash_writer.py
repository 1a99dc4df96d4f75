"""A process that stores numbered records until it is killed, saying after each that it has.

Some are stored many at once, which is quicker, and then one by one. Each line says how many records
are acknowledged, up to which of them the disk has everything, and for how long the oldest that it
does not have has been acknowledged.
"""

from __future__ import annotations

import time
from collections import deque
from typing import NamedTuple

from msgspec import Struct

from ...kernel import Durability, MemoryManager, NewObject
from .children import order_of, say

CAPACITY = 1 << 28  # of address space; memory is taken for what is stored
BATCH = 64
SEGMENT = 1 << 20  # bytes of a file of the journal


class Order(Struct):
    """Where to write, how, from which record on, and how many at once before the single ones."""

    folder: str
    sync: str
    checkpoint_bytes: int
    first: int
    at_once: int


class Acknowledged(NamedTuple):
    """What a line says; the numbers are counts of records."""

    records: int
    durable: int
    waiting: float  # seconds that the oldest one has been waiting for the disk


def text_of(number: int) -> str:
    """Return what a record must say: of its own length, and like no other."""
    return f"record {number} " + "abcdefghij"[number % 10] * (20 + number * 7919 % 300)


def open_space(order: Order) -> MemoryManager:
    """Open the space, recovering what is there."""
    how = Durability(
        sync=order.sync, checkpoint_bytes=order.checkpoint_bytes, segment_bytes=SEGMENT
    )
    return MemoryManager(CAPACITY, folder=order.folder, durability=how, retriever=None)


class Writer:
    """Stores records and says so."""

    def __init__(self, space: MemoryManager, first: int) -> None:
        self.space, self.next = space, first
        self._waiting: deque[tuple[int, int, float]] = deque()  # lsn, records so far, when
        self._durable = first  # what was there when we came may be taken as safe

    def store(self, count: int) -> None:
        """Store so many records in one step."""
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
    """Write for ever."""
    order = order_of(Order)
    writer = Writer(open_space(order), order.first)
    say(Acknowledged(order.first, order.first, 0.0))
    while writer.next < order.first + order.at_once:
        writer.store(min(BATCH, order.first + order.at_once - writer.next))
    while True:
        writer.store(1)


if __name__ == "__main__":
    main()
