"""The object table: metadata of every object in flat arrays, one row (*slot*) per object.

There is no Python object per memory object, so a million of them cost CPython's own garbage
collector nothing. An object is named by a *handle*: its slot and the slot's generation. A slot is
reused, a handle never, so a stale handle is recognised at once.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from typing import Generic, TypeVar

from ...errors import OutOfSpace

SLOT_BITS = 32
SLOT_MASK = (1 << SLOT_BITS) - 1
MAX_SLOTS = 1 << 31
FOREVER = float("inf")
NOT_HOT = -1

LIVE = 1
ROOT = 2
PINNED = 4
NAMED = 8  # its id was chosen by the caller and is part of its body
COLD = 16  # the cold tier holds a copy of exactly these bytes
RECOVERED = 64  # from before a restart: the cold tier may hold a copy that was not recorded
LINKED = 32  # it refers, or referred, to others

_ROWS = 1024  # how many rows are added at once
_ALIVE = re.compile(b"[%s]" % re.escape(bytes(n for n in range(256) if n & LIVE)))
_NAMED = re.compile(b"[%s]" % re.escape(bytes(n for n in range(256) if n & NAMED)))
_ROOTS = re.compile(b"[%s]" % re.escape(bytes(n for n in range(256) if n & (ROOT | PINNED))))

T = TypeVar("T")


class ObjectTable:
    """The rows of all objects. Only the heap writes them."""

    __slots__ = (
        "accessed",
        "address",
        "age",
        "created",
        "edges",
        "expires",
        "flags",
        "free_slots",
        "generations",
        "handle",
        "importance",
        "live",
        "references",
        "rows",
        "size",
        "stamp",
        "tags",
        "tenant",
        "uses",
        "weight",
    )

    def __init__(self) -> None:
        self.handle = array("Q")  # 0: the slot is free
        self.address = array("q")  # in the arena, or NOT_HOT
        self.size = array("I")  # of the body, in bytes
        self.weight = array("I")  # what it counts against a logical budget
        self.stamp = array("Q")  # identifies the write of the body; never used twice
        self.created = array("d")
        self.expires = array("d")
        self.accessed = array("d")
        self.uses = array("I")
        self.importance = array("d")
        self.references = array("I")  # how many live objects refer to it
        self.tenant = array("I")
        self.tags = array("I")
        self.edges = array("i")  # its first outgoing reference, or -1
        self.generations = array("I")  # how many objects this slot has held
        self.flags = bytearray()
        self.age = bytearray()  # how often a generational collector has promoted it
        self.free_slots = array("I")
        self.rows = 0  # slots below this have been used
        self.live = 0

    def next_slot(self) -> int:
        """Return a slot for a new object, without taking it."""
        if self.free_slots:
            return self.free_slots[-1]
        if self.rows == len(self.handle):
            self.grow(self.rows + 1)
        return self.rows

    def coming_slots(self, count: int) -> list[int]:
        """Return the slots that the next ``count`` objects will take."""
        if count == 1:
            return [self.next_slot()]
        coming = list(self.free_slots[: -count - 1 : -1])
        missing = count - len(coming)
        if self.rows + missing > len(self.handle):
            self.grow(self.rows + missing)
        return [*coming, *range(self.rows, self.rows + missing)]

    def claim(self, slot: int) -> None:
        """Take a slot: the next one or, in recovery, the one that was taken originally."""
        if self.free_slots and self.free_slots[-1] == slot:
            self.free_slots.pop()
        elif slot == self.rows:
            if slot == len(self.handle):
                self.grow(slot + 1)
            self.rows += 1
        else:
            self._claim_out_of_order(slot)

    def next_handle(self, slot: int) -> int:
        """Return the handle that the next object in a slot will have."""
        return (self.generations[slot] + 1) << SLOT_BITS | slot

    def slot_of(self, handle: int) -> int:
        """Return the slot of a living object, or -1."""
        slot = handle & SLOT_MASK
        return slot if slot < self.rows and self.handle[slot] == handle and handle else -1

    def living(self, start: int = 0, stop: int | None = None) -> Iterator[int]:
        """Yield the slots that are living now, even if rows change during the iteration."""
        stop = self.rows if stop is None else min(stop, self.rows)
        part = bytes(self.flags[start:stop])
        return (start + match.start() for match in _ALIVE.finditer(part))

    def rooted(self, start: int, stop: int) -> list[int]:
        """Return the slots of roots and pinned objects in a range of rows."""
        part = bytes(self.flags[start : min(stop, self.rows)])
        return [start + match.start() for match in _ROOTS.finditer(part)]

    def named(self) -> list[int]:
        """Return the slots of objects whose ids were chosen by callers."""
        return [match.start() for match in _NAMED.finditer(bytes(self.flags[: self.rows]))]

    def grow(self, rows: int) -> None:
        """Make sure that there are at least so many rows."""
        if rows > MAX_SLOTS:
            raise OutOfSpace(f"a space holds at most {MAX_SLOTS} objects")
        missing = max(_ROWS, rows - len(self.handle))
        for column in (self.handle, self.size, self.weight, self.stamp, self.created, self.expires,
                       self.accessed, self.uses, self.importance, self.references, self.tenant,
                       self.tags, self.generations):  # fmt: skip
            column.frombytes(bytes(missing * column.itemsize))
        for signed in (self.address, self.edges):
            signed.frombytes(b"\xff" * (missing * signed.itemsize))
        self.flags.extend(bytes(missing))
        self.age.extend(bytes(missing))

    def _claim_out_of_order(self, slot: int) -> None:
        if slot < self.rows:
            self.free_slots.remove(slot)
            return
        if slot >= len(self.handle):
            self.grow(slot + 1)
        self.free_slots.extend(range(self.rows, slot))
        self.rows = slot + 1

    def check(self) -> None:
        """Verify the invariants of the rows by themselves."""
        free = set(self.free_slots)
        assert len(free) == len(self.free_slots), "a free slot is listed twice"
        for slot in range(self.rows):
            handle = self.handle[slot]
            assert bool(handle) == bool(self.flags[slot] & LIVE) == (slot not in free), slot
            if handle:
                assert handle & SLOT_MASK == slot
                assert handle >> SLOT_BITS <= self.generations[slot]
        assert self.live == self.rows - len(free)


class Interned(Generic[T]):
    """Values kept once each, numbered and counted by use; an unused value is dropped."""

    def __init__(self, first: T) -> None:
        self.values: list[T] = [first]  # number 0 is never dropped
        self._numbers: dict[T, int] = {first: 0}
        self.users = [1]
        self.free: list[int] = []

    def take(self, value: T) -> int:
        """Return the number of a value and count one more use."""
        number = self._numbers.get(value)
        if number is None:
            number = self._new(value)
        self.users[number] += 1
        return number

    def drop(self, number: int) -> None:
        """Count one use less; drop the value with its last use."""
        self.users[number] -= 1
        if not self.users[number]:
            del self._numbers[self.values[number]]
            self.values[number] = self.values[0]  # keeps dropped values out of checkpoints
            self.free.append(number)

    def load(self, values: list[T], users: list[int], free: list[int]) -> None:
        """Take over the state of another instance."""
        self.values, self.users, self.free = values, users, free
        gone = set(free)
        self._numbers = {value: number for number, value in enumerate(values) if number not in gone}
        for number in free:  # images of earlier versions still contain them
            values[number] = values[0]

    def find(self, value: T) -> int | None:
        """Return the number of a value, or ``None`` if it is not in use."""
        return self._numbers.get(value)

    def _new(self, value: T) -> int:
        if self.free:
            number = self.free.pop()
            self.values[number] = value
        else:
            number = len(self.values)
            self.values.append(value)
            self.users.append(0)
        self._numbers[value] = number
        return number
