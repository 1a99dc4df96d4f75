"""The engine behind a ``MemoryManager``: heap, journal and index, and the one way to change them.

Every change is checked, gets its blocks reserved, is journalled, then applied. Collections and
checkpoints run in slices between the caller's own calls. Callers hold ``writing`` (or ``reading``)
around everything that touches the heap.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import NoReturn, TypeVar

from ..errors import InvalidInput, OutOfSpace, StoreError, UnknownObject
from ..events import EventStream
from ..lifecycle import ClosingNow
from .durable.checkpointing import Checkpointing
from .durable.folder import SpaceFiles, SpaceFolder
from .durable.recovery import rebuild
from .gc.scheduler import GCScheduler
from .heap.drafts import Drafts, NewObject
from .heap.heap import STAMP_BITS, Heap, bodies_of
from .heap.lower_tier import LowerTier
from .heap.object import MemoryObject
from .heap.ops import MAX_OPS, FreeOp, Op, encode_ops
from .heap.reading import Hit
from .heap.table import SLOT_MASK
from .index.searching import HeapIndex, open_index
from .limits import SpaceLimits
from .locks import Side, YieldingLock
from .options import EngineOptions
from .reserving import Reservations

T = TypeVar("T")

logger = logging.getLogger(__name__)

_LOOK_EVERY = 16  # changes between two checks for work that is due
_SLICE_EVERY = 128  # changes between two slices of work in progress

QUICK_OBJECTS = 128  # objects that are soon read or written: an event loop can spare the time
_PAGE = 4096  # bytes that take as long as another object


class Engine(ClosingNow):
    """Heap, journal, index, collection and checkpoints under one lock.

    Subclasses override the hooks for a tier below the heap: ``open_lower_tier``, ``prepare``,
    ``demote``, ``drain``, ``do_upkeep``, ``bodies``, ``fits``, ``has_space_for`` and ``release``.
    """

    def __init__(self, options: EngineOptions, files: SpaceFiles) -> None:
        runtime = options.runtime.with_events()
        assert runtime.events is not None  # with_events saw to it
        self.options = options
        self.wal = files.wal
        self.checkpoint_manager = files.checkpoints
        self.folder = files.folder
        self.events: EventStream = runtime.events
        self.clock = runtime.clock
        self.reading: Side
        self.writing: Side
        self.reading = self.writing = YieldingLock()
        if runtime.lock is not None:
            self.reading, self.writing = runtime.lock.read, runtime.lock.write
        self.scrubbing = threading.Lock()  # one scrub at a time; taken before ``writing``
        self.on_reload: list[Callable[[], None]] = []
        self.search: HeapIndex | None = None
        self.has_limits = options.quotas.are_set
        self._drafts = Drafts()
        self._closed = False
        self._calls = 0
        try:
            self._open()
        except BaseException:
            self.abandon_files()
            raise

    def _open(self) -> None:
        self.heap = Heap(self.options.capacity, self.options.allocator)
        self.lower_tier = self.open_lower_tier()
        self.collecting = GCScheduler(self)
        self.checkpointing = Checkpointing(self)
        self._begin()

    def open_lower_tier(self) -> LowerTier:
        """Return the tier below the heap; here an empty one."""
        return LowerTier()

    def _begin(self) -> None:
        """Recover what the files hold and attach index and collectors."""
        self.limits = SpaceLimits(self.heap, self.options.quotas, self.collecting)
        self.reservations = Reservations(self.heap, self.lower_tier, self.collecting, self.demote)
        self.prepare()
        self._recover()
        self.search = open_index(
            self.options.retriever,
            self.heap,
            self.events,
            folder=None if self.folder is None else self.folder.index_path,
            before=self.search,
        )
        for collector in self.options.collectors:
            collector.attach(self.heap)

    def prepare(self) -> None:
        """Let the lower tier follow the heap before anything is recovered."""
        self.lower_tier.follow(self.heap)

    def _recover(self) -> None:
        """Rebuild the heap from checkpoints and journal."""
        try:
            found = rebuild(
                self.heap,
                self.checkpoint_manager,
                self.wal,
                reserve=self.reservations.reserve_in_recovery,
                spill=self.lower_tier.spill,
            )
        except OutOfSpace as error:
            raise OutOfSpace(
                f"the stored objects do not fit into {self.heap.space.capacity} bytes of capacity "
                f"({error}); nothing was changed: open the space with a bigger capacity"
            ) from error
        self.checkpointing.last_lsn = found.checkpoint_lsn
        self.lower_tier.tombstones = [*found.tombstones, *self.lower_tier.tombstones]
        if self.wal is not None and self.wal.last_lsn < found.lsn:
            self.wal.skip_to(found.lsn)
        self.heap.lsn = max(found.lsn, 0 if self.wal is None else self.wal.last_lsn)
        self.lower_tier.recovered(journalled=self.wal is not None)

    def reload(self) -> None:
        """Start over from what is on disk, as after a restart."""
        self.abandon_work()
        self.collecting.maybe_garbage = True
        if self.search is not None:
            self.search.clear()
        old, self.heap = self.heap, self.heap.empty_copy()
        old.space.close()
        self._begin()
        for listener in self.on_reload:
            listener()

    # -- closing -----------------------------------------------------------------------------------

    def close(self) -> None:
        """Stop background work and close what was opened here."""
        with self.writing:
            if self._closed:
                return
            self._closed = True
            self.abandon_work()
            self.release()

    def release(self) -> None:
        """Close what was opened here; what was passed in stays open."""
        try:
            if self.folder is not None:
                self._close_folder(self.folder)
            elif self.wal is not None:
                self.wal.sync()
        finally:
            self.heap.space.close()

    def abandon_files(self) -> None:
        """Close the folder if the space could not be opened."""
        if self.folder is not None:
            self.folder.close()

    def _close_folder(self, folder: SpaceFolder) -> None:
        """Make every change durable, then save an index that includes them."""
        try:
            folder.wal.close()
            if self.search is not None:
                self.search.save()
        finally:
            folder.close()

    # -- changing ----------------------------------------------------------------------------------

    def insert(self, objects: Sequence[NewObject], also: Sequence[Op] = ()) -> list[int]:
        """Store objects and apply other ops with them, all or none; return their slots."""
        if len(objects) == 1:
            return [self.insert_one(objects[0], also)]
        if self._closed:
            self._refuse()
        self.expect(len(objects))
        if len(objects) > MAX_OPS:
            raise InvalidInput(f"at most {MAX_OPS} objects can be stored at once")
        now = self.clock()
        bodies = [self._drafts.encode(new, self.heap) for new in objects]
        self._free_expired_names(objects, now)
        if self.has_limits:
            self.limits.check(objects, bodies)
        lsn = self.heap.lsn + 1
        addresses = self.reservations.reserve(
            [(lsn << STAMP_BITS | number, body) for number, body in enumerate(bodies)]
        )
        try:
            slots = self.heap.table.coming_slots(len(objects))
            stored = [
                self._drafts.op(new, body, self.heap.table.next_handle(slot), now)
                for new, body, slot in zip(objects, bodies, slots, strict=True)
            ]
            self.heap.require(also)  # reserving may have collected an object
        except BaseException:
            self.reservations.release(addresses)
            raise
        self._apply([*stored, *also], addresses)
        self.collecting.maybe_garbage = True
        if self.search is not None:
            for new, slot in zip(objects, slots, strict=True):
                self.search.add(slot, new.payload)
        return slots

    def fits(self, objects: Sequence[NewObject]) -> bool:
        """Return whether objects can be stored without collecting others."""
        bodies = [self._drafts.encode(new, self.heap) for new in objects]
        return self.limits.allow(objects, bodies) and self.has_space_for(map(len, bodies))

    def has_space_for(self, sizes: Iterable[int]) -> bool:
        """Return whether bodies of these sizes fit into the heap."""
        space = self.heap.space
        return sum(map(space.block_size, sizes)) <= space.available()

    def insert_one(self, new: NewObject, also: Sequence[Op] = ()) -> int:
        """Do what ``insert`` does, for a single object in fewer steps. Most calls are this one."""
        if self._closed:
            self._refuse()
        now, heap = self.clock(), self.heap
        body = self._drafts.encode(new, heap)
        if len(body) > QUICK_OBJECTS * _PAGE:
            self.lower_tier.wait()
        if new.id is not None:
            self._free_expired_names((new,), now)
        if self.has_limits:
            self.limits.check((new,), (body,))
        try:
            address = heap.space.allocate(len(body))
        except OutOfSpace:
            address = self.reservations.reserve([((heap.lsn + 1) << STAMP_BITS, body)])[0]
        try:
            slot = heap.table.next_slot()
            stored = self._drafts.op(new, body, heap.table.next_handle(slot), now)
            heap.require(also)  # reserving may have collected an object
        except BaseException:
            self.reservations.release((address,))
            raise
        self._apply([stored, *also], (address,))
        self.collecting.maybe_garbage = True
        if self.search is not None:
            self.search.add(slot, new.payload)
        return slot

    def change(self, ops: Sequence[Op]) -> None:
        """Apply ops to living objects, all or none."""
        if self._closed:
            self._refuse()
        self.expect(len(ops))
        bodies = bodies_of(ops, self.heap.lsn + 1)
        addresses = self.reservations.reserve(bodies) if bodies else []
        try:
            self.heap.require(ops)  # reserving may have collected an object
        except UnknownObject:
            self.reservations.release(addresses)
            raise
        self._apply(ops, addresses)

    def free(self, handles: list[int], reason: str) -> None:
        """Free objects in one step. They must be living."""
        if self._closed:
            self._refuse()
        freed = self._names_and_sizes(handles) if self.events.has_listeners else ()
        self.collecting.maybe_garbage = True
        self._apply((FreeOp(handles, reason),), ())
        for object_id, size in freed:
            self.events.emit("free", id=object_id, size=size, reason=reason)

    def _names_and_sizes(self, handles: Sequence[int]) -> list[tuple[str, int]]:
        slots = [handle & SLOT_MASK for handle in handles]
        return [(self.heap.id_of(slot), self.heap.table.size[slot]) for slot in slots]

    def _apply(self, ops: Sequence[Op], addresses: Sequence[int]) -> None:
        """Journal, then apply. What is not journalled has not happened."""
        pending = self.lower_tier.pending
        try:
            if pending:
                self.lower_tier.admit(addresses)
            lsn = self.heap.lsn + 1 if self.wal is None else self.wal.append(encode_ops(ops))
        except BaseException:
            self.reservations.release(addresses)
            raise
        self.heap.apply(ops, lsn, addresses)
        if pending:
            self.lower_tier.commit(addresses)

    def _free_expired_names(self, objects: Sequence[NewObject], now: float) -> None:
        """Free expired objects whose ids are wanted; raise ``InvalidInput`` for ids in use."""
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

    def require_open(self) -> None:
        """Raise ``InvalidInput`` if the space is closed."""
        if self._closed:
            self._refuse()

    def _refuse(self) -> NoReturn:
        raise InvalidInput("this space is closed; open it again")

    # -- durability --------------------------------------------------------------------------------

    def wait_for(self, lsn: int) -> None:
        """Return when the journal's policy calls a change safe."""
        if self.wal is not None:
            self.wal.commit(lsn)

    async def wait_for_async(self, lsn: int) -> None:
        """Return when the journal's policy calls a change safe."""
        if self.wal is not None:
            await self.wal.commit_async(lsn)

    def checkpoint(self) -> int:
        """Write a checkpoint that holds every change made before the call; return its lsn."""
        wanted = self.last_lsn
        while (lsn := self.checkpointing.complete()) < wanted:
            pass  # one that was already captured, before the last change
        return lsn

    # -- background work ---------------------------------------------------------------------------

    def demote(self, enough: Callable[[], bool]) -> None:
        """Move bodies to a colder tier until ``enough()``; here there is no such tier."""

    def drain(self) -> None:
        """Return when every write to a colder tier that began before this call has ended."""

    def expect(self, steps: int, size: int = 0) -> None:
        """Raise ``WouldWait`` within ``at_once`` if so many objects or bytes take too long."""
        if steps + size // _PAGE > QUICK_OBJECTS:
            self.lower_tier.wait()

    def at_once(self, work: Callable[[], T]) -> T:
        """Do quick work while the caller holds the lock.

        If the work would wait for the disk, or take long, ``WouldWait`` is raised before anything
        has changed.
        """
        self.lower_tier.may_wait = False
        try:
            return work()
        finally:
            self.lower_tier.may_wait = True

    def needs_time(self) -> bool:
        """Return whether the next ``do_upkeep`` may take a while."""
        return not (self._calls + 1) % _SLICE_EVERY

    def do_upkeep(self, *, now: bool = False) -> None:
        """Do background work that is due, one slice at a time. Called after every change.

        The change has happened, so an error in the background work is logged, not raised, unless
        ``now`` asks for the work itself.
        """
        self._calls += 1
        collecting = self.collecting
        worked, collecting.has_worked = collecting.has_worked, False
        if (self._calls % _LOOK_EVERY or worked) and not now:  # at most one slice per call
            return
        try:
            self._run_upkeep(now=now)
        except StoreError as error:
            if now:
                raise
            logger.warning("background work failed and will be retried: %s", error)
            self.events.emit("upkeep_failed", error=error)

    def _run_upkeep(self, *, now: bool) -> None:
        self.collecting.begin_if_due()
        if now or not self._calls % _SLICE_EVERY:
            self.checkpointing.begin_if_due()
            if self.collecting.cycle is not None:
                self.collecting.advance(self.options.pause)
            elif self.checkpointing.writer is not None:
                self.checkpointing.advance()
            elif self.search is not None:
                self.search.do_upkeep(self.options.pause)

    def abandon_work(self) -> None:
        """Stop the collection and the checkpoint in progress."""
        self.collecting.abandon()
        self.checkpointing.abandon()

    # -- objects and figures -----------------------------------------------------------------------

    def slot(self, object_id: str) -> int:
        """Return the slot of a living object; ``UnknownObject`` if there is none."""
        slot = self.heap.find(object_id)
        if slot < 0 or self.heap.table.expires[slot] <= self.clock():
            raise unknown(object_id)
        return slot

    def body(self, slot: int) -> bytes:
        """Return an object's bytes, from either tier."""
        return self.heap.body_of(slot)

    def raw(self, slot: int) -> bytes | None:
        """Return an object's bytes as they are stored, without verifying them."""
        return self.heap.read(slot)

    def bodies(self, slots: Sequence[int]) -> list[bytes]:
        """Return the bytes of several objects and count a use of each."""
        self.expect(len(slots))
        table, now = self.heap.table, self.clock()
        for slot in slots:
            table.uses[slot] += 1
            table.accessed[slot] = now
        return [self.heap.body_of(slot) for slot in slots]

    def object(self, slot: int) -> MemoryObject:
        """Return a copy of an object."""
        return self.heap.object(slot, self.heap.body_of(slot))

    def hits(self, found: Sequence[tuple[int, float]]) -> list[Hit]:
        """Return the objects that a search found and count a use of each."""
        slots = [handle & SLOT_MASK for handle, _ in found]
        return [
            Hit(self.heap.object(slot, body), score)
            for slot, body, (_, score) in zip(slots, self.bodies(slots), found, strict=True)
        ]

    def check(self) -> None:
        """Verify every invariant. Meant for tests: it reads everything."""
        with self.writing:
            self.heap.check()
            if self.search is not None:
                self.search.check()

    @property
    def is_closed(self) -> bool:
        """If it was closed: it cannot be changed any more."""
        return self._closed

    @property
    def last_lsn(self) -> int:
        """The number of the last change."""
        return self.heap.lsn

    @property
    def now(self) -> float:
        """The time on the space's clock."""
        return self.clock()

    @property
    def capacity(self) -> int:
        """How many bytes the heap has."""
        return self.heap.space.capacity

    @property
    def live_objects(self) -> int:
        """How many objects there are."""
        return self.heap.table.live

    def fragmentation(self) -> float:
        """Return how scattered the free bytes of the heap are, from 0 to 1."""
        return self.heap.space.fragmentation()


def unknown(object_id: str) -> UnknownObject:
    """Return the error for an id that no object has."""
    return UnknownObject(
        f"no object {object_id!r}: it was never stored, was freed or collected, or has expired"
    )
