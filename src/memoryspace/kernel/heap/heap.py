"""``Heap``: the objects of a space, and the one place where they change.

``apply`` makes the changes that ops describe, at run time and in recovery alike. It cannot fail
half-way: its callers check the ops and reserve the blocks before they journal anything.

The index, the pager, a running collector and a checkpoint in progress follow the heap through the
listener lists. Listeners are called while the row of the object can still be read.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ...errors import UnknownObject
from .allocators import Allocator
from .names import ObjectNames
from .object import ID_PREFIX, MemoryObject, decode_body, handle_of, id_of
from .ops import MAX_OPS, FlagOp, FreeOp, LinkOp, Op, RewriteOp, StoreOp, TuneOp
from .references import References
from .space import MemorySpace
from .table import (
    COLD,
    FOREVER,
    LINKED,
    LIVE,
    NAMED,
    NOT_HOT,
    PINNED,
    RECOVERED,
    ROOT,
    SLOT_BITS,
    SLOT_MASK,
    Interned,
    ObjectTable,
)

_STALE_EXPIRIES = 1024

SlotListener = Callable[[int], None]

STAMP_BITS = MAX_OPS.bit_length() - 1


class Tenants:
    """The tenants, and how many bytes the objects of each take."""

    def __init__(self) -> None:
        self.names: Interned[str] = Interned("")
        self.bytes: list[int] = [0]

    def take(self, tenant: str, size: int) -> int:
        """Count one more object of a tenant and return the tenant's number."""
        number = self.names.take(tenant) if tenant else 0
        if number == len(self.bytes):
            self.bytes.append(0)
        self.bytes[number] += size
        return number

    def drop(self, number: int, size: int) -> None:
        """Count one object less."""
        self.bytes[number] -= size
        if number:
            self.names.drop(number)

    def used(self, tenant: str) -> int:
        """Return how many bytes a tenant's objects take."""
        number = self.names.find(tenant)
        return 0 if number is None else self.bytes[number]


class Heap:
    """The state of a memory space. Not thread-safe: the engine holds the lock."""

    def __init__(self, capacity: int, allocator: Allocator | None = None) -> None:
        self._allocator = allocator
        self.space = MemorySpace(capacity, allocator)
        self.table = ObjectTable()
        self.references = References(self.table)
        self.tenants = Tenants()
        self.tags: Interned[tuple[str, ...]] = Interned(())
        self.names = ObjectNames()
        self.due: list[tuple[float, int]] = []  # a heap of (expiry, handle)
        self.lsn = 0  # of the last change
        self.roots = self.pinned = 0
        self.held_bytes = 0  # of roots and pinned objects
        self.weight = 0
        self.body_of: Callable[[int], bytes] = self.read  # a cold tier replaces this
        self.on_stored: list[SlotListener] = []
        self.on_freed: list[SlotListener] = []
        self.on_changed: list[SlotListener] = []
        self.on_rewritten: list[Callable[[int, int, int], None]] = []  # slot, old stamp, old flags
        self.on_kept: list[SlotListener] = []  # became a root, pinned, or the target of another

    def empty_copy(self) -> Heap:
        """Return a new heap of the same capacity, which takes over the allocator."""
        return Heap(self.space.capacity, self._allocator)

    def reserve(self, sizes: Iterable[int]) -> list[int]:
        """Allocate blocks of these sizes; raise ``OutOfSpace`` with none allocated."""
        addresses: list[int] = []
        try:
            for size in sizes:
                addresses.append(self.space.allocate(size))  # noqa: PERF401  # kept if one fails
        except BaseException:
            self.release(addresses)
            raise
        return addresses

    def release(self, addresses: Iterable[int]) -> None:
        """Free reserved blocks: their ops will not happen."""
        for address in addresses:
            if address != NOT_HOT:
                self.space.deallocate(address)

    def apply(self, ops: Sequence[Op], lsn: int, addresses: Sequence[int]) -> None:
        """Make the changes that ops describe. Nothing else writes the table.

        ``addresses`` are the blocks for the bodies in the ops, in order; ``NOT_HOT`` for a body
        that the cold tier already holds.
        """
        block = 0
        self.lsn = lsn
        for number, op in enumerate(ops):
            if type(op) is StoreOp:
                self._store(op, lsn << STAMP_BITS | number, addresses[block])
                block += 1
            elif type(op) is FreeOp:
                for handle in op.handles:
                    self._free(handle & SLOT_MASK)
            elif isinstance(op, RewriteOp):
                self._rewrite(op, lsn << STAMP_BITS | number, addresses[block])
                block += 1
            else:
                self._adjust(op)

    def read(self, slot: int) -> bytes:
        """Return the body of a hot object."""
        table = self.table
        return self.space.read(table.address[slot], table.size[slot])

    def id_of(self, slot: int) -> str:
        """Return an object's id."""
        handle = self.table.handle[slot]
        name = self.names.of(handle) if self.table.flags[slot] & NAMED else None
        return id_of(handle) if name is None else name

    def find(self, object_id: str) -> int:
        """Return the slot of the object with an id, or -1."""
        if object_id[:1] != ID_PREFIX:
            return self.table.slot_of(self.names.get(object_id))
        handle = handle_of(object_id)
        slot = handle & SLOT_MASK
        table = self.table
        return slot if slot < table.rows and table.handle[slot] == handle and handle else -1

    def object(self, slot: int, body: bytes, object_id: str | None = None) -> MemoryObject:
        """Return a copy of an object with these bytes. Pass its id if it is known."""
        table, found = self.table, MemoryObject()
        found.id = self.id_of(slot) if object_id is None else object_id
        found._body = body
        found._content = None
        found.size = table.weight[slot]
        found.address = table.address[slot]
        found.created_at = table.created[slot]
        found.expires_at = table.expires[slot]
        found.last_accessed_at = table.accessed[slot]
        found.importance = table.importance[slot]
        found.access_count = table.uses[slot]
        found.reference_count = table.references[slot]
        found.generation = table.age[slot]
        found._tags = self.tags.values[table.tags[slot]]
        found.tenant = self.tenants.names.values[table.tenant[slot]]
        return found

    def now_cold(self, slot: int) -> None:
        """Note that the cold tier holds exactly these bytes."""
        self.table.flags[slot] |= COLD
        self._notify(self.on_changed, slot)

    def evict(self, slot: int) -> None:
        """Drop the hot copy of an object whose bytes the cold tier holds."""
        assert self.table.flags[slot] & COLD, "never destroy before the copy is safe"
        self.space.deallocate(self.table.address[slot])
        self.table.address[slot] = NOT_HOT

    def place(self, slot: int, body: bytes) -> None:
        """Give a cold object a hot copy again; raise ``OutOfSpace`` if it does not fit."""
        address = self.space.allocate(len(body))
        self.space.fill(address, body, slot)
        self.table.address[slot] = address

    def recovered(self) -> None:
        """Report every object that an image brought back as stored."""
        if self.on_stored:
            for slot in self.table.living():
                self._notify(self.on_stored, slot)

    def recall_names(self, slots: Iterable[int]) -> None:
        """Read the names of objects from their bodies again."""
        for slot in slots:
            handle = self.table.handle[slot]
            name = decode_body(self.body_of(slot), id_of(handle)).name
            if name is not None:
                self.names[name] = handle

    def compact(self) -> int:
        """Slide all hot objects together and return how many bytes moved."""
        return self.space.compact(self.table.address.__setitem__)

    def check(self) -> None:
        """Verify every invariant. Meant for tests: it reads everything."""
        table = self.table
        self.space.check()
        table.check()
        self.references.check()
        hot: dict[int, int] = {}
        for slot in table.living():
            address = table.address[slot]
            assert address != NOT_HOT or table.flags[slot] & COLD, f"{slot} is in neither tier"
            if address != NOT_HOT:
                assert self.space.room(address) >= table.size[slot]
                assert address not in hot, f"{slot} and {hot[address]} share a block"
                hot[address] = slot
        blocks = {start + 8 for start, _ in self.space.snapshot().allocated}
        assert blocks == set(hot), "a block without an object, or the reverse"
        self._check_sums()

    def _check_sums(self) -> None:
        table = self.table
        living = list(table.living())
        held = [slot for slot in living if table.flags[slot] & (ROOT | PINNED)]
        assert self.roots == sum(bool(table.flags[slot] & ROOT) for slot in living)
        assert self.pinned == sum(bool(table.flags[slot] & PINNED) for slot in living)
        assert self.held_bytes == sum(table.size[slot] for slot in held)
        assert self.weight == sum(table.weight[slot] for slot in living)
        for number, total in enumerate(self.tenants.bytes):
            assert total == sum(table.size[slot] for slot in living if table.tenant[slot] == number)
        due = {handle for _, handle in self.due}
        expiring = {table.handle[slot] for slot in living if table.expires[slot] != FOREVER}
        assert expiring <= due, "the expiry of an object would go unnoticed"

    def _store(self, op: StoreOp, stamp: int, address: int) -> None:
        table, handle, size = self.table, op.handle, len(op.body)
        slot = handle & SLOT_MASK
        table.claim(slot)
        if address != NOT_HOT:
            self.space.fill(address, op.body, slot)
        table.handle[slot] = handle
        table.generations[slot] = handle >> SLOT_BITS  # grows: a handle is never given again
        table.address[slot] = address
        table.size[slot] = size
        table.weight[slot] = op.weight
        table.stamp[slot] = stamp
        table.created[slot] = table.accessed[slot] = op.created
        table.expires[slot] = op.expires
        table.importance[slot] = op.importance
        table.flags[slot] = op.flags | (LIVE if address != NOT_HOT else LIVE | COLD)
        table.tenant[slot] = self.tenants.take(op.tenant, size)
        table.tags[slot] = self.tags.take(op.tags) if op.tags else 0
        table.live += 1
        self.weight += op.weight
        if op.flags & (ROOT | PINNED | NAMED):
            self._note_kept(op, slot, size)
        if op.expires != FOREVER:
            heapq.heappush(self.due, (op.expires, handle))
        for listener in self.on_stored:
            listener(slot)

    def _note_kept(self, op: StoreOp, slot: int, size: int) -> None:
        if op.flags & NAMED:
            name = decode_body(op.body, id_of(op.handle)).name
            if name is not None:
                self.names[name] = op.handle
        if op.flags & (ROOT | PINNED):
            self.roots += bool(op.flags & ROOT)
            self.pinned += bool(op.flags & PINNED)
            self.held_bytes += size

    def _free(self, slot: int) -> None:
        table = self.table
        for listener in self.on_freed:
            listener(slot)
        flags, size = table.flags[slot], table.size[slot]
        if flags & (ROOT | PINNED | NAMED):
            self._forget_kept(slot, flags, size)
        if flags & LINKED:
            self.references.drop(slot)
        if table.address[slot] != NOT_HOT:
            self.space.deallocate(table.address[slot])
            table.address[slot] = NOT_HOT
        self.tenants.drop(table.tenant[slot], size)
        if table.tags[slot]:
            self.tags.drop(table.tags[slot])
        self.weight -= table.weight[slot]
        table.live -= 1
        table.handle[slot] = 0
        table.flags[slot] = table.age[slot] = 0
        table.references[slot] = table.uses[slot] = 0
        table.free_slots.append(slot)

    def _forget_kept(self, slot: int, flags: int, size: int) -> None:
        if flags & NAMED:
            self.names.forget(self.table.handle[slot])
        if flags & (ROOT | PINNED):
            self.roots -= bool(flags & ROOT)
            self.pinned -= bool(flags & PINNED)
            self.held_bytes -= size

    def _rewrite(self, op: RewriteOp, stamp: int, address: int) -> None:
        """Write the new body, then free the old block."""
        table, slot = self.table, op.handle & SLOT_MASK
        grown = len(op.body) - table.size[slot]
        old_stamp, old_flags = table.stamp[slot], table.flags[slot]
        if address != NOT_HOT:
            self.space.fill(address, op.body, slot)
        if table.address[slot] != NOT_HOT:
            self.space.deallocate(table.address[slot])
        table.address[slot] = address
        table.size[slot] = len(op.body)
        table.stamp[slot] = stamp
        table.flags[slot] &= ~(COLD | RECOVERED)
        if address == NOT_HOT:
            table.flags[slot] |= COLD
        self.tenants.bytes[table.tenant[slot]] += grown
        self.weight += op.weight - table.weight[slot]
        table.weight[slot] = op.weight
        if table.flags[slot] & (ROOT | PINNED):
            self.held_bytes += grown
        self._notify(self.on_changed, slot)
        for listener in self.on_rewritten:
            listener(slot, old_stamp, old_flags)

    def _adjust(self, op: Op) -> None:
        if isinstance(op, LinkOp):
            self._link(op)
        elif isinstance(op, FlagOp):
            self._flag(op)
        elif isinstance(op, TuneOp):
            self._tune(op)

    def _link(self, op: LinkOp) -> None:
        source = op.source & SLOT_MASK
        if op.on:
            self.references.add(source, op.target)
            self._notify(self.on_kept, op.target & SLOT_MASK)
        else:
            self.references.remove(source, op.target)
        self._notify(self.on_changed, source)

    def _flag(self, op: FlagOp) -> None:
        table, slot = self.table, op.handle & SLOT_MASK
        before = table.flags[slot]
        after = before | op.flag if op.on else before & ~op.flag
        table.flags[slot] = after
        self.roots += bool(after & ROOT) - bool(before & ROOT)
        self.pinned += bool(after & PINNED) - bool(before & PINNED)
        held = bool(after & (ROOT | PINNED)) - bool(before & (ROOT | PINNED))
        self.held_bytes += held * table.size[slot]
        if op.on:
            self._notify(self.on_kept, slot)
        self._notify(self.on_changed, slot)

    def _tune(self, op: TuneOp) -> None:
        table, slot = self.table, op.handle & SLOT_MASK
        table.importance[slot] = op.importance
        if op.expires != table.expires[slot]:
            table.expires[slot] = op.expires
            if op.expires != FOREVER:
                self._due_later(op.expires, op.handle)
        old = table.tags[slot]
        table.tags[slot] = self.tags.take(op.tags) if op.tags else 0
        if old:
            self.tags.drop(old)
        self._notify(self.on_changed, slot)

    def _due_later(self, end: float, handle: int) -> None:
        """Note a new expiry; outdated entries are dropped when they become many."""
        table = self.table
        if len(self.due) > 2 * table.live + _STALE_EXPIRIES:
            self.due[:] = [  # in place: a running collector may hold the list
                (end, each)
                for end, each in set(self.due)
                if (slot := table.slot_of(each)) >= 0 and table.expires[slot] == end
            ]
            heapq.heapify(self.due)
        heapq.heappush(self.due, (end, handle))

    @staticmethod
    def _notify(listeners: list[SlotListener], slot: int) -> None:
        for listener in listeners:
            listener(slot)

    def require(self, ops: Iterable[Op]) -> None:
        """Raise ``UnknownObject`` unless every object that ops change exists."""
        for op in ops:
            for handle in _handles(op):
                if self.table.slot_of(handle) < 0:
                    raise UnknownObject(f"no object {id_of(handle)!r}: it was freed")


def bodies_of(ops: Sequence[Op], lsn: int) -> list[tuple[int, bytes]]:
    """Return the bodies in ops, each with the stamp of its write."""
    return [
        (lsn << STAMP_BITS | number, op.body)
        for number, op in enumerate(ops)
        if isinstance(op, StoreOp | RewriteOp)
    ]


def _handles(op: Any) -> Sequence[int]:
    """Return the handles of objects that an op requires to exist."""
    if isinstance(op, StoreOp):
        return ()
    if isinstance(op, FreeOp):
        return op.handles
    if isinstance(op, LinkOp):
        return (op.source, op.target)
    return (op.handle,)
