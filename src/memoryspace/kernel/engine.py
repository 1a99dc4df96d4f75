"""``Engine``: what stands behind a ``MemoryManager``: the one way a change is made.

Check, make room, journal, apply. Around it: the lock, the index, the collection under way and the
checkpoint under way, which go on in slices between the program's own calls.
"""

from __future__ import annotations

import heapq
import logging
import math
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn

from ..errors import InvalidInput, OutOfSpace, StoreError, UnknownObject
from ..events import EventStream
from ..lifecycle import ClosingNow
from .checkpoints import CheckpointManager, CheckpointWriter
from .collectors import GarbageCollector
from .cycles import Cycle, GCEvent
from .drafts import Drafts, NewObject
from .heap import STAMP_BITS, Heap, bodies_of
from .journal import WriteAheadLog
from .locks import ReadWriteLock, YieldingLock
from .object import MemoryObject
from .ops import MAX_OPS, Freed, Op, encode_ops
from .policies import GCPolicy
from .recovery import rebuild
from .searching import Retriever, open_search
from .table import SLOT_MASK

logger = logging.getLogger(__name__)

Relief = Callable[[Callable[[], bool]], None]  # makes room until it is told that there is enough
Bodies = Sequence[tuple[int, bytes]]  # (stamp that the write will have, body)

_LOOK_EVERY = 16  # calls between two looks at whether something is due
_SLICE_EVERY = 128  # calls between two slices of work that is under way
_REMEMBERED_CYCLES = 1000
_TOP_HOLDERS = 3  # named when space is refused


@dataclass(frozen=True)
class Options:
    """How a space is managed."""

    collectors: tuple[GarbageCollector, ...] = ()
    policies: tuple[GCPolicy, ...] = ()
    quotas: dict[str, int] = field(default_factory=dict)
    default_quota: int | None = None
    budget: int | None = None
    checkpoint_bytes: int | None = None
    pause: float = 0.001

    def __post_init__(self) -> None:
        if not self.pause > 0:
            raise InvalidInput(f"pause must be above 0 seconds, got {self.pause}")


class Engine(ClosingNow):
    """Heap, journal, index, collection and checkpoints under one lock."""

    def __init__(
        self,
        heap: Heap,
        options: Options,
        *,
        retriever: Retriever | Literal["sparse"] | None,
        wal: WriteAheadLog | None,
        checkpoint_manager: CheckpointManager | None,
        lock: ReadWriteLock | None,
        events: EventStream,
        clock: Callable[[], float],
    ) -> None:
        self.heap = heap
        self.options = options
        self.wal = wal
        self.checkpoint_manager = checkpoint_manager
        self.events = events
        self.clock = clock
        self.gc_events: deque[GCEvent] = deque(maxlen=_REMEMBERED_CYCLES)
        self.reading: AbstractContextManager[Any]
        self.writing: AbstractContextManager[Any]
        self.reading = self.writing = YieldingLock()
        if lock is not None:
            self.reading, self.writing = lock.read, lock.write
        self.on_reload: list[Callable[[], None]] = []
        self._retriever = retriever
        self._has_limits = bool(
            options.quotas or options.default_quota is not None or options.budget is not None
        )
        self._drafts = Drafts()
        self._closed = False
        self.cycles_run = 0
        self._calls = 0
        self._has_worked = False  # a slice was done since the last look
        self._begin()

    def _begin(self) -> None:
        """Recover what there is and start to follow it."""
        self._cycle: Cycle | None = None
        self._checkpoint: CheckpointWriter | None = None
        self._maybe_garbage = True  # something may have become garbage since the last full cycle
        self.graves: list[tuple[int, int]] = []  # (freed at, stamp) of bodies still in the cold
        self.prepare()
        self._recover()
        self.search = open_search(self._retriever, self.heap, self.events)
        for collector in self.options.collectors:
            collector.attach(self.heap)

    def reload(self) -> None:
        """Start over from what is on disk, as after a restart."""
        if self.search is not None:
            self.search.clear()
        old, self.heap = self.heap, self.heap.empty_copy()
        old.space.close()
        self._begin()
        for told in self.on_reload:
            told()

    @property
    def last_lsn(self) -> int:
        """The number of the last change."""
        return self.heap.lsn

    # -- the one way -------------------------------------------------------------------------------

    def insert(self, objects: Sequence[NewObject], also: Sequence[Op] = ()) -> list[int]:
        """Store objects, and make other changes with them, all or none; return their slots."""
        if len(objects) == 1:
            return [self.insert_one(objects[0], also)]
        if self._closed:
            self._refuse()
        if len(objects) > MAX_OPS:
            raise InvalidInput(f"at most {MAX_OPS} objects can be stored at once")
        now = self.clock()
        bodies = [self._drafts.encode(new, self.heap) for new in objects]
        self._free_expired_names(objects, now)
        self._check_limits(objects, bodies)
        lsn = self.heap.lsn + 1
        addresses = self.make_room(
            [(lsn << STAMP_BITS | number, body) for number, body in enumerate(bodies)]
        )
        try:
            slots = self.heap.table.coming_slots(len(objects))
            stored = [
                self._drafts.op(new, body, self.heap.table.next_handle(slot), now)
                for new, body, slot in zip(objects, bodies, slots, strict=True)
            ]
            self.heap.require(also)  # making room may have collected an object
        except BaseException:
            self.unplace(addresses)
            raise
        self._apply([*stored, *also], addresses)
        self._maybe_garbage = True
        if self.search is not None:
            for new, slot in zip(objects, slots, strict=True):
                self.search.add(slot, new.payload)
        return slots

    def insert_one(self, new: NewObject, also: Sequence[Op] = ()) -> int:
        """``insert`` of a single object, which is what most calls are: the same in fewer steps."""
        if self._closed:
            self._refuse()
        now, heap = self.clock(), self.heap
        body = self._drafts.encode(new, heap)
        if new.id is not None:
            self._free_expired_names((new,), now)
        if self._has_limits:
            self._check_limits((new,), (body,))
        try:
            address = heap.space.allocate(len(body))
        except OutOfSpace:
            address = self.make_room([((heap.lsn + 1) << STAMP_BITS, body)])[0]
        try:
            slot = heap.table.next_slot()
            stored = self._drafts.op(new, body, heap.table.next_handle(slot), now)
            heap.require(also)  # making room may have collected an object
        except BaseException:
            self.unplace((address,))
            raise
        self._apply([stored, *also], (address,))
        self._maybe_garbage = True
        if self.search is not None:
            self.search.add(slot, new.payload)
        return slot

    def change(self, ops: Sequence[Op]) -> None:
        """Make changes to living objects, all or none."""
        if self._closed:
            self._refuse()
        bodies = bodies_of(ops, self.heap.lsn + 1)
        addresses = self.make_room(bodies) if bodies else []
        try:
            self.heap.require(ops)  # making room may have collected an object
        except UnknownObject:
            self.unplace(addresses)
            raise
        self._apply(ops, addresses)

    def free(self, handles: list[int], reason: str) -> None:
        """Free objects, which the caller knows to be living, in one step."""
        if self._closed:
            self._refuse()
        told = self._names_and_sizes(handles) if self.events.has_listeners else ()
        self._maybe_garbage = True
        self._apply((Freed(handles, reason),), ())
        for object_id, size in told:
            self.events.emit("free", id=object_id, size=size, reason=reason)

    def _names_and_sizes(self, handles: Sequence[int]) -> list[tuple[str, int]]:
        slots = [handle & SLOT_MASK for handle in handles]
        return [(self.heap.id_of(slot), self.heap.table.size[slot]) for slot in slots]

    def _apply(self, ops: Sequence[Op], addresses: Sequence[int]) -> None:
        """Journal, then apply: what is not journalled did not happen."""
        try:
            lsn = self.heap.lsn + 1 if self.wal is None else self.wal.append(encode_ops(ops))
        except BaseException:
            self.unplace(addresses)
            raise
        self.heap.apply(ops, lsn, addresses)

    def prepare(self) -> None:
        """Get ready before anything is recovered; for managers with more tiers."""

    def _recover(self) -> None:
        """Bring back what checkpoints and journal hold."""
        try:
            found = rebuild(
                self.heap,
                self.checkpoint_manager,
                self.wal,
                reserve=self._room_in_recovery,
                spill=self.spill,
            )
        except OutOfSpace as error:
            raise OutOfSpace(
                f"what the space holds does not fit into a capacity of {self.heap.space.capacity} "
                f"bytes ({error}); nothing was changed: open it with a bigger capacity"
            ) from error
        self._checkpoint_lsn = found.checkpoint_lsn
        self.graves = [*found.graves, *self.graves]
        if self.wal is not None and self.wal.last_lsn < found.lsn:
            self.wal.skip_to(found.lsn)
        self.heap.lsn = max(found.lsn, 0 if self.wal is None else self.wal.last_lsn)

    def _room_in_recovery(self, bodies: Bodies) -> list[int]:
        """Reserve blocks where nothing may be collected: what the journal frees, it frees."""
        return self._reserve(bodies, (self.demote,))

    def spill(self, bodies: list[tuple[int, bytes]]) -> None:
        """Find a place for recovered bodies when the heap is smaller than the image."""
        for slot, body in bodies:
            self.heap.place(slot, body)

    # -- checking ----------------------------------------------------------------------------------

    def _free_expired_names(self, objects: Sequence[NewObject], now: float) -> None:
        """An id is free again when its object's time is over; otherwise it is taken."""
        named = [new.id for new in objects if new.id is not None]
        if len(set(named)) < len(named):
            raise InvalidInput("two of the objects have the same id; nothing was stored")
        for object_id in named:
            slot = self.heap.find(object_id)
            if slot < 0:
                continue
            if self.heap.table.expires[slot] > now:
                raise InvalidInput(f"object {object_id!r} exists; update it, or free it first")
            self.free([self.heap.table.handle[slot]], "expired")

    def _check_limits(self, objects: Sequence[NewObject], bodies: Sequence[bytes]) -> None:
        """Refuse what a quota or the budget does not allow, after trying to make it fit."""
        wanted: dict[str, int] = {}
        for new, body in zip(objects, bodies, strict=True):
            wanted[new.tenant] = wanted.get(new.tenant, 0) + len(body)
        for tenant, size in wanted.items():
            self.keep_quota(tenant, size)
        if self.options.budget is not None:
            pairs = zip(objects, bodies, strict=True)
            weights = (len(body) if new.size is None else new.size for new, body in pairs)
            self.keep_budget(sum(weights))

    def keep_budget(self, weight: int) -> None:
        """Refuse so much weight more if the budget does not allow it."""
        budget = self.options.budget
        if budget is None:
            return
        self._keep_below(
            lambda: self.heap.weight + weight <= budget,
            lambda: f"the budget of {budget} holds {self.heap.weight}; {weight} more do not fit",
        )

    def keep_quota(self, tenant: str, size: int) -> None:
        """Refuse so many bytes more if the tenant's quota does not allow them."""
        quota = self.options.quotas.get(tenant, self.options.default_quota)
        if quota is None:
            return
        used = self.heap.tenants.used
        self._keep_below(
            lambda: used(tenant) + size <= quota,
            lambda: (
                f"tenant {tenant!r} uses {used(tenant)} of {quota} bytes; {size} more do not "
                "fit: free some of its objects or raise its quota"
            ),
        )

    def _keep_below(self, fits: Callable[[], bool], why: Callable[[], str]) -> None:
        for relieve in (self._expire, self._collect):
            if fits():
                return
            relieve(fits)
        if not fits():
            raise OutOfSpace(why())

    def _refuse(self) -> NoReturn:
        raise InvalidInput("this space is closed; open it again")

    # -- room --------------------------------------------------------------------------------------

    def make_room(self, bodies: Bodies) -> list[int]:
        """Return reserved blocks; under pressure: expire, collect, tidy up, demote, refuse."""
        return self._reserve(bodies, (self._expire, self._collect, self.demote))

    def _reserve(self, bodies: Bodies, reliefs: Sequence[Relief]) -> list[int]:
        sizes = [len(body) for _, body in bodies]
        try:
            return self.heap.reserve(sizes)
        except OutOfSpace:
            space, total = self.heap.space, sum(map(self.heap.space.block_size, sizes))
        if total > space.capacity:
            return self.overflow(bodies, total)

        def enough() -> bool:
            return space.available() >= total

        for relieve in reliefs:
            if not enough():
                relieve(enough)
            if enough():
                return self._reserve_tidily(sizes)
        raise OutOfSpace(self._refusal(total))

    def overflow(self, bodies: Bodies, total: int) -> list[int]:
        """Find another place for bodies that the heap could not hold if it were empty."""
        raise OutOfSpace(self._refusal(total))

    def unplace(self, addresses: Sequence[int]) -> None:
        """Give back what was reserved: the change will not happen."""
        self.heap.release(addresses)

    def demote(self, enough: Callable[[], bool]) -> None:
        """Move objects to a colder tier until there is room; here there is none."""

    def _reserve_tidily(self, sizes: Sequence[int]) -> list[int]:
        """Reserve what is free in total, sliding the blocks together if it is scattered."""
        try:
            return self.heap.reserve(sizes)
        except OutOfSpace:
            self.heap.compact()
            return self.heap.reserve(sizes)

    def _expire(self, enough: Callable[[], bool]) -> None:
        due = self._due_collectors()
        if due:
            cycle = Cycle(self.heap, due, self.free, "expiry", self.clock())
            cycle.advance(math.inf, enough)
            cycle.abandon()

    def _collect(self, enough: Callable[[], bool]) -> None:
        """Collect until there is room: the cycle under way first, then, if that was not all, one
        that sees everything that has become garbage since."""
        for _ in range(2):
            if self._cycle is None:
                if not self._maybe_garbage:
                    return
                self.begin_cycle("pressure")
            self.advance_cycle(math.inf, enough)
            if enough():
                return

    def _refusal(self, total: int) -> str:
        heap, space = self.heap, self.heap.space
        sizes = zip(heap.tenants.bytes, heap.tenants.names.values, strict=True)
        biggest = heapq.nlargest(_TOP_HOLDERS, (pair for pair in sizes if pair[0]))
        named = ", ".join(f"{tenant or 'no tenant'}: {size}" for size, tenant in biggest)
        return (
            f"no room for {total} bytes: {space.available()} of {space.capacity} are free; "
            f"{heap.table.live} objects hold the rest, {heap.held_bytes} bytes of them are roots "
            f"or pinned (bytes by tenant: {named or 'none'}); free, unpin or unroot some, or "
            "choose a bigger capacity"
        )

    # -- work in slices ----------------------------------------------------------------------------

    def look_after(self, *, now: bool = False) -> None:
        """Do what is due, a slice at a time; called after every call that changes something.

        The change has happened: that the upkeep fails is no reason to call it failed.
        """
        self._calls += 1
        worked, self._has_worked = self._has_worked, False
        if (self._calls % _LOOK_EVERY or worked) and not now:  # one slice a call is enough
            return
        try:
            self._keep_up(now=now)
        except StoreError as error:
            if now:
                raise
            logger.warning("upkeep failed, it is tried again: %s", error)
            self.events.emit("upkeep_failed", error=error)

    def _keep_up(self, *, now: bool) -> None:
        if self._cycle is None:
            self._begin_cycle_if_due()
        if now or not self._calls % _SLICE_EVERY:
            self._begin_checkpoint_if_due()
            if self._cycle is not None:
                self.advance_cycle(self.options.pause)
            elif self._checkpoint is not None:
                self._advance_checkpoint(self._checkpoint)
            elif self.search is not None and self.search.has_backlog:
                self.search.catch_up(self.options.pause)

    def _begin_cycle_if_due(self) -> None:
        for policy in self.options.policies:
            if policy.should_trigger(self, "tick"):  # type: ignore[arg-type]  # a manager is one
                self.begin_cycle(type(policy).__name__)
                return
        due = self._due_collectors()
        if due:
            self._cycle = Cycle(self.heap, due, self.free, "expiry", self.clock())

    def _due_collectors(self) -> list[GarbageCollector]:
        now = self.clock()
        return [each for each in self.options.collectors if each.should_trigger(self.heap, now)]

    def begin_cycle(self, trigger: str) -> Cycle:
        """Start a collection."""
        self._maybe_garbage = False
        self._cycle = Cycle(self.heap, self.options.collectors, self.free, trigger, self.clock())
        return self._cycle

    def advance_cycle(self, seconds: float, enough: Callable[[], bool] | None = None) -> bool:
        """Go on with the collection under way; tell whether it ended."""
        assert self._cycle is not None
        self._has_worked = True
        try:
            pause = self._cycle.advance(seconds, enough)
        except BaseException:
            self._cycle = None
            raise
        self.events.emit("gc_slice", pause=pause)
        if self._cycle.done:
            self.end_cycle()
            return True
        return False

    def end_cycle(self) -> GCEvent:
        """Report the collection that has ended."""
        assert self._cycle is not None
        event, self._cycle = self._cycle.event, None
        event.timestamp = self.clock()
        event.heap_used = self.heap.space.allocated()
        event.fragmentation = self.heap.space.fragmentation()
        self.gc_events.append(event)
        self.cycles_run += 1
        for policy in self.options.policies:
            policy.notify_gc(self, event)  # type: ignore[arg-type]  # a manager is one
        self.events.emit(
            "gc_cycle",
            trigger=event.trigger,
            freed=event.freed,
            freed_bytes=event.freed_bytes,
            collected=event.collected,
            heap_used=event.heap_used,
            fragmentation=event.fragmentation,
            pause_duration=event.pause_duration,
            duration=event.duration,
        )
        return event

    def _begin_checkpoint_if_due(self) -> None:
        limit = self.options.checkpoint_bytes
        if limit is None or self.wal is None or self.checkpoint_manager is None:
            return
        if self._checkpoint is None and self.wal.bytes_since(self._checkpoint_lsn) >= limit:
            self.begin_checkpoint()

    def begin_checkpoint(self) -> CheckpointWriter:
        """Start to write a checkpoint."""
        if self.checkpoint_manager is None:
            raise InvalidInput("this space has no checkpoint manager; open it in a folder")
        self._checkpoint = self.checkpoint_manager.begin(self.heap)
        return self._checkpoint

    def capture(self, writer: CheckpointWriter) -> None:
        """Let a checkpoint take in a slice of the heap."""
        try:
            writer.capture(self.options.pause, self.heap.lsn, self.clock(), self.graves)
        except BaseException:
            self.drop_checkpoint(writer)
            raise

    def drop_checkpoint(self, writer: CheckpointWriter) -> None:
        """Give up a checkpoint that failed; the next one starts anew."""
        if self._checkpoint is writer:
            self._checkpoint = None
        writer.abandon()

    def conclude(self, writer: CheckpointWriter) -> None:
        """A checkpoint is safe: drop what only older ones need."""
        if self._checkpoint is not writer:
            return  # another thread was first
        self._checkpoint = None
        self._checkpoint_lsn = writer.lsn
        self._after_checkpoint()
        self.events.emit("checkpoint", lsn=writer.lsn, bytes=writer.bytes_written)

    def finish_checkpoint(self, writer: CheckpointWriter) -> None:
        """Make a captured checkpoint durable; without the lock."""
        writer.finish()

    def _advance_checkpoint(self, writer: CheckpointWriter) -> None:
        """Go on with a checkpoint that nobody waits for: its fsync has a thread of its own."""
        if not writer.captured:
            self.capture(writer)
            if writer.captured:
                writer.finish_in_background(lambda: self.finish_checkpoint(writer))
        elif writer.failure is not None:
            self.drop_checkpoint(writer)
            logger.warning("a checkpoint failed, the journal goes on: %s", writer.failure)
            self.events.emit("checkpoint_failed", error=writer.failure)
        elif writer.finished:
            self.conclude(writer)

    def _after_checkpoint(self) -> None:
        """Drop what no checkpoint that is kept needs any longer."""
        assert self.checkpoint_manager is not None
        oldest = self.checkpoint_manager.prune(self.clock())
        if self.wal is not None and oldest:
            self.wal.truncate(oldest + 1)
        self.bury(oldest)

    def bury(self, oldest: int) -> None:
        """Delete bodies that no checkpoint from this lsn on can need; here there are none."""

    def abandon_work(self) -> None:
        """Stop the collection and the checkpoint under way."""
        if self._cycle is not None:
            self._cycle.abandon()
            self._cycle = None
        if self._checkpoint is not None:
            self._checkpoint.wait()
            self._checkpoint.abandon()
            self._checkpoint = None

    # -- objects and index -------------------------------------------------------------------------

    def slot(self, object_id: str) -> int:
        """Return the slot of a living object; ``UnknownObject`` if there is none."""
        slot = self.heap.find(object_id)
        if slot < 0 or self.heap.table.expires[slot] <= self.clock():
            raise unknown(object_id)
        return slot

    def body(self, slot: int) -> bytes:
        """Return an object's bytes, from wherever they are."""
        return self.heap.read(slot)

    def bodies(self, slots: Sequence[int]) -> list[bytes]:
        """Return the bytes of several objects, counting a use of each."""
        table, now = self.heap.table, self.clock()
        for slot in slots:
            table.uses[slot] += 1
            table.accessed[slot] = now
        return [self.heap.read(slot) for slot in slots]

    def object(self, slot: int) -> MemoryObject:
        """Return a copy of an object."""
        return self.heap.object(slot, self.body(slot))


def unknown(object_id: str) -> UnknownObject:
    """Return the error for an id that no object has."""
    return UnknownObject(
        f"no object {object_id!r}: it was never stored, was freed or collected, or has expired"
    )
