"""The engine behind a ``MemoryManager``: heap, journal and index, and the one way to change them.

Every change is checked, gets its blocks reserved, is journalled, then applied. Collections and
checkpoints run in slices between the caller's own calls. Callers hold ``writing`` (or ``reading``)
around everything that touches the heap.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NoReturn

from ..errors import InvalidInput, OutOfSpace, StoreError, UnknownObject
from ..events import EventStream
from ..lifecycle import ClosingNow
from .durable.checkpointing import Imaging
from .durable.folder import SpaceFiles, SpaceFolder
from .durable.recovery import rebuild
from .gc.scheduler import GCScheduler
from .heap.drafts import Drafts, NewObject
from .heap.heap import STAMP_BITS, Heap, bodies_of
from .heap.lower_tier import LowerTier
from .heap.object import MemoryObject
from .heap.ops import MAX_OPS, Freed, Op, encode_ops
from .heap.reading import Hit
from .heap.table import SLOT_MASK
from .index.searching import Searching, open_search
from .limits import Limits
from .locks import YieldingLock
from .options import Options
from .reserving import Reservations

logger = logging.getLogger(__name__)

_LOOK_EVERY = 16  # calls between two looks at whether something is due
_SLICE_EVERY = 128  # calls between two slices of work that is under way


class Engine(ClosingNow):
    """Heap, journal, index, collection and checkpoints under one lock.

    Subclasses override the hooks for a tier below the heap: ``open_lower_tier``, ``prepare``,
    ``demote``, ``drain``, ``look_after``, ``bodies``, ``fits``, ``has_room`` and ``release``.
    """

    def __init__(self, options: Options, files: SpaceFiles) -> None:
        runtime = options.runtime.with_events()
        assert runtime.events is not None  # with_events saw to it
        self.options = options
        self.wal = files.wal
        self.checkpoint_manager = files.checkpoints
        self.folder = files.folder
        self.events: EventStream = runtime.events
        self.clock = runtime.clock
        self.reading: AbstractContextManager[Any]
        self.writing: AbstractContextManager[Any]
        self.reading = self.writing = YieldingLock()
        if runtime.lock is not None:
            self.reading, self.writing = runtime.lock.read, runtime.lock.write
        self.scrubbing = threading.Lock()  # one scrub at a time; taken before ``writing``
        self.on_reload: list[Callable[[], None]] = []
        self.search: Searching | None = None
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
        self.imaging = Imaging(self)
        self._begin()

    def open_lower_tier(self) -> LowerTier:
        """Return what stands below the heap; here nothing does."""
        return LowerTier()

    def _begin(self) -> None:
        """Recover what there is and start to follow it."""
        self.limits = Limits(self.heap, self.options.quotas, self.collecting)
        self.reservations = Reservations(self.heap, self.lower_tier, self.collecting, self.demote)
        self.prepare()
        self._recover()
        self.search = open_search(
            self.options.retriever,
            self.heap,
            self.events,
            folder=None if self.folder is None else self.folder.index_path,
            before=self.search,
        )
        for collector in self.options.collectors:
            collector.attach(self.heap)

    def prepare(self) -> None:
        """Follow the heap before anything is recovered."""
        self.lower_tier.follow(self.heap)

    def _recover(self) -> None:
        """Bring back what checkpoints and journal hold."""
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
                f"what the space holds does not fit into a capacity of {self.heap.space.capacity} "
                f"bytes ({error}); nothing was changed: open it with a bigger capacity"
            ) from error
        self.imaging.last_lsn = found.checkpoint_lsn
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
        for told in self.on_reload:
            told()

    # -- closing -----------------------------------------------------------------------------------

    def close(self) -> None:
        """Finish the work under way and close what was opened here."""
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
            self.heap.require(also)  # making room may have collected an object
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
        """Tell whether objects could be stored without making room by collecting others."""
        bodies = [self._drafts.encode(new, self.heap) for new in objects]
        return self.limits.allow(objects, bodies) and self.has_room(map(len, bodies))

    def has_room(self, sizes: Iterable[int]) -> bool:
        """Tell whether the heap has bytes for bodies of these sizes."""
        space = self.heap.space
        return sum(map(space.block_size, sizes)) <= space.available()

    def insert_one(self, new: NewObject, also: Sequence[Op] = ()) -> int:
        """``insert`` of a single object, which is what most calls are: the same in fewer steps."""
        if self._closed:
            self._refuse()
        now, heap = self.clock(), self.heap
        body = self._drafts.encode(new, heap)
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
            heap.require(also)  # making room may have collected an object
        except BaseException:
            self.reservations.release((address,))
            raise
        self._apply([stored, *also], (address,))
        self.collecting.maybe_garbage = True
        if self.search is not None:
            self.search.add(slot, new.payload)
        return slot

    def change(self, ops: Sequence[Op]) -> None:
        """Make changes to living objects, all or none."""
        if self._closed:
            self._refuse()
        bodies = bodies_of(ops, self.heap.lsn + 1)
        addresses = self.reservations.reserve(bodies) if bodies else []
        try:
            self.heap.require(ops)  # making room may have collected an object
        except UnknownObject:
            self.reservations.release(addresses)
            raise
        self._apply(ops, addresses)

    def free(self, handles: list[int], reason: str) -> None:
        """Free objects, which the caller knows to be living, in one step."""
        if self._closed:
            self._refuse()
        told = self._names_and_sizes(handles) if self.events.has_listeners else ()
        self.collecting.maybe_garbage = True
        self._apply((Freed(handles, reason),), ())
        for object_id, size in told:
            self.events.emit("free", id=object_id, size=size, reason=reason)

    def _names_and_sizes(self, handles: Sequence[int]) -> list[tuple[str, int]]:
        slots = [handle & SLOT_MASK for handle in handles]
        return [(self.heap.id_of(slot), self.heap.table.size[slot]) for slot in slots]

    def _apply(self, ops: Sequence[Op], addresses: Sequence[int]) -> None:
        """Journal, then apply: what is not journalled did not happen."""
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

    def require_open(self) -> None:
        """Raise unless changes can be made."""
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
        while (lsn := self.imaging.complete()) < wanted:
            pass  # that one had been captured, for itself, before the last change
        return lsn

    # -- work in slices ----------------------------------------------------------------------------

    def demote(self, enough: Callable[[], bool]) -> None:
        """Move objects to a colder tier until there is room; here there is none."""

    def drain(self) -> None:
        """Return when nothing is on its way to a colder tier that was sent before this call."""

    def look_after(self, *, now: bool = False) -> None:
        """Do what is due, a slice at a time; called after every call that changes something.

        The change has happened: that the upkeep fails is no reason to call it failed.
        """
        self._calls += 1
        collecting = self.collecting
        worked, collecting.has_worked = collecting.has_worked, False
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
        self.collecting.begin_if_due()
        if now or not self._calls % _SLICE_EVERY:
            self.imaging.begin_if_due()
            if self.collecting.cycle is not None:
                self.collecting.advance(self.options.pause)
            elif self.imaging.writer is not None:
                self.imaging.advance()
            elif self.search is not None:
                self.search.look_after(self.options.pause)

    def abandon_work(self) -> None:
        """Stop the collection and the checkpoint under way."""
        self.collecting.abandon()
        self.imaging.abandon()

    # -- objects and figures -----------------------------------------------------------------------

    def slot(self, object_id: str) -> int:
        """Return the slot of a living object; ``UnknownObject`` if there is none."""
        slot = self.heap.find(object_id)
        if slot < 0 or self.heap.table.expires[slot] <= self.clock():
            raise unknown(object_id)
        return slot

    def body(self, slot: int) -> bytes:
        """Return an object's bytes, from wherever they are."""
        return self.heap.body_of(slot)

    def bodies(self, slots: Sequence[int]) -> list[bytes]:
        """Return the bytes of several objects, counting a use of each."""
        table, now = self.heap.table, self.clock()
        for slot in slots:
            table.uses[slot] += 1
            table.accessed[slot] = now
        return [self.heap.body_of(slot) for slot in slots]

    def object(self, slot: int) -> MemoryObject:
        """Return a copy of an object."""
        return self.heap.object(slot, self.heap.body_of(slot))

    def hits(self, found: Sequence[tuple[int, float]]) -> list[Hit]:
        """Return the objects that a search found, counting a use of each."""
        slots = [handle & SLOT_MASK for handle, _ in found]
        return [
            Hit(self.heap.object(slot, body), score)
            for slot, body, (_, score) in zip(slots, self.bodies(slots), found, strict=True)
        ]

    def check(self) -> None:
        """Verify every invariant; for tests, it looks at everything."""
        with self.writing:
            self.heap.check()
            if self.search is not None:
                self.search.check()

    @property
    def last_lsn(self) -> int:
        """The number of the last change."""
        return self.heap.lsn

    @property
    def now(self) -> float:
        """The clock, as policies see it."""
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
        """How badly the free bytes of the heap are scattered, from 0 to 1."""
        return self.heap.space.fragmentation()


def unknown(object_id: str) -> UnknownObject:
    """Return the error for an id that no object has."""
    return UnknownObject(
        f"no object {object_id!r}: it was never stored, was freed or collected, or has expired"
    )
