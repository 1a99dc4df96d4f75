"""``MemoryManager``: objects in a bounded heap, with references, collection and a journal.

Every change goes one way: the op is checked, room is made, the op is journalled, then applied.
Recovery applies the same ops to the newest checkpoint. When room is short, the order is: expire,
collect, tidy up, demote (if there is a cold tier), refuse. A refusal names who holds the space.

All methods may be called from any thread. A method that changes something returns when the
journal's policy calls the change safe.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, Literal

from ..errors import InvalidInput, UnknownObject
from ..events import EventStream
from .acknowledging import durable
from .durable.checkpoints import CheckpointManager
from .durable.folder import Durability, SpaceFolder
from .durable.journal import WriteAheadLog
from .durable.scrubbing import scrub
from .engine import Engine, unknown
from .gc.collectors import GarbageCollector, default_collectors
from .gc.cycles import GCEvent
from .gc.policies import GCPolicy
from .heap.allocators import Allocator
from .heap.drafts import NewObject
from .heap.heap import Heap
from .heap.object import ID_PREFIX, MemoryObject
from .heap.ops import Flagged, Linked
from .heap.reading import (
    Condemned,
    Hit,
    allowing,
    condemned,
    layout,
    living_ids,
    reachable_ids,
    target_ids,
)
from .heap.table import PINNED, ROOT, SLOT_MASK
from .heap.updating import Update
from .index.searching import Retriever
from .locks import ReadWriteLock
from .options import Options

__all__ = ["Condemned", "Hit", "MemoryManager"]


class MemoryManager(Engine):
    """Objects in a heap of ``capacity`` bytes.

    ``collectors`` say who goes (default: expiry, then reachability from roots and pins),
    ``policies`` when to look. ``retriever`` is the index behind ``retrieve``; ``None`` goes
    without. ``quotas`` bound the bytes of each tenant, ``default_quota`` those of the others;
    ``budget`` bounds the sum of the ``size`` that callers declare. ``pause`` is how long one slice
    of collection may take.

    With a ``folder`` everything outlives the process: what is in it is recovered, every change is
    journalled, and ``durability`` says how. (Or hand in a ``wal`` and a ``checkpoint_manager``.)
    """

    def __init__(
        self,
        capacity: int,
        *,
        allocator: Allocator | None = None,
        collectors: Sequence[GarbageCollector] | None = None,
        retriever: Retriever | Literal["sparse"] | None = "sparse",
        policies: Sequence[GCPolicy] = (),
        wal: WriteAheadLog | None = None,
        checkpoint_manager: CheckpointManager | None = None,
        quotas: Mapping[str, int] | None = None,
        default_quota: int | None = None,
        budget: int | None = None,
        folder: str | PathLike[str] | None = None,
        durability: Durability | None = None,
        pause: float = 0.001,
        lock: ReadWriteLock | None = None,
        events: EventStream | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        events = EventStream(clock=clock) if events is None else events
        durability = Durability() if durability is None else durability
        self._folder: SpaceFolder | None = None
        if folder is not None:
            self._folder = SpaceFolder(folder, durability, events=events, clock=clock)
            wal, checkpoint_manager = self._folder.wal, self._folder.checkpoints
        try:
            super().__init__(
                Heap(capacity, allocator),
                Options(
                    collectors=tuple(default_collectors() if collectors is None else collectors),
                    policies=tuple(policies),
                    quotas=dict(quotas) if quotas is not None else {},
                    default_quota=default_quota,
                    budget=budget,
                    checkpoint_bytes=durability.checkpoint_bytes,
                    pause=pause,
                ),
                retriever=retriever,
                index_folder=None if self._folder is None else self._folder.index_path,
                wal=wal,
                checkpoint_manager=checkpoint_manager,
                lock=lock,
                events=events,
                clock=clock,
            )
        except BaseException:
            if self._folder is not None:
                self._folder.close()
            raise

    # -- storing -----------------------------------------------------------------------------------

    @durable
    def store(
        self,
        payload: Mapping[str, Any],
        *,
        size: int | None = None,
        tags: Iterable[str] = (),
        importance: float = 0.5,
        ttl: float | None = None,
        embedding: Sequence[float] | None = None,
        pin: bool = False,
        root: bool = False,
        tenant: str = "",
        id: str | None = None,  # the name users know
    ) -> MemoryObject:
        """Store a payload of plain data; return the object.

        ``ttl`` is in seconds. ``size`` is what it counts against a ``budget`` (default: its
        bytes). Raises ``OutOfSpace``, ``NotSerializable`` or ``InvalidInput``, with nothing
        stored.
        """
        new = NewObject(payload, size, tags, importance, ttl, embedding, pin, root, tenant, id)
        cycles = self.collecting.cycles_run
        found = self.object(self.insert_one(new))
        self._tell_stored(found, cycles)
        return found

    @durable
    def store_many(self, objects: Iterable[NewObject]) -> list[MemoryObject]:
        """Store several objects: all of them, or, with an error, none."""
        return self._store(list(objects))

    @durable
    def store_existing(self, obj: MemoryObject) -> MemoryObject:
        """Store a copy of an object of another space, under the same id."""
        new = NewObject(
            obj.payload, obj.size, obj.tags, obj.importance, obj.ttl, obj.embedding,
            tenant=obj.tenant, id=None if obj.id.startswith(ID_PREFIX) else obj.id,
            created_at=obj.created_at,
        )  # fmt: skip
        return self._store([new])[0]

    @durable
    def update(
        self,
        object_id: str,
        *,
        payload: Mapping[str, Any] | None = None,
        tags: Iterable[str] | None = None,
        importance: float | None = None,
        ttl: float | None = None,
    ) -> MemoryObject:
        """Change what is given; ``ttl`` counts from now. The id, and who refers to it, stay."""
        slot = self.slot(object_id)
        same = self.heap.body_of(slot) if payload is None else None  # read before it changes
        update = Update(payload, tags, importance, ttl)
        self.change(update.ops(self.heap, slot, self.limits, self.clock))
        if payload is not None and self.search is not None:
            self.search.add(slot, payload)
        return self.heap.object(slot, self.heap.body_of(slot) if same is None else same)

    @durable
    def free_object(self, object_id: str) -> None:
        """Free an object, whoever refers to it."""
        self.free([self.heap.table.handle[self.slot(object_id)]], "freed")

    @durable
    def free_many(self, object_ids: Iterable[str]) -> int:
        """Free several objects at once; return how many there were."""
        slots = {self.heap.find(object_id) for object_id in object_ids} - {-1}
        self.expect(len(slots))
        if slots:
            self.free([self.heap.table.handle[slot] for slot in sorted(slots)], "freed")
        return len(slots)

    # -- reading -----------------------------------------------------------------------------------

    def load(self, object_id: str) -> MemoryObject:
        """Return an object, counting a use; ``UnknownObject`` if there is none."""
        with self.reading:
            heap, now = self.heap, self.clock()
            table = heap.table
            slot = heap.find(object_id)
            if slot < 0 or table.expires[slot] <= now:
                raise unknown(object_id)
            table.uses[slot] += 1
            table.accessed[slot] = now
            found = heap.object(slot, heap.body_of(slot), object_id)
        self.events.emit("load", id=object_id, size=found.size)
        return found

    def peek(self, object_id: str) -> MemoryObject:
        """Return an object without counting a use: for scans."""
        with self.reading:
            return self.object(self.slot(object_id))

    def __contains__(self, object_id: object) -> bool:
        with self.reading:
            slot = self.heap.find(object_id) if isinstance(object_id, str) else -1
            return slot >= 0 and self.heap.table.expires[slot] > self.clock()

    def __len__(self) -> int:
        return self.heap.table.live

    def __bool__(self) -> bool:
        return True  # an empty manager is a manager

    def ids(self) -> list[str]:
        """Return the ids of all objects."""
        with self.reading:
            return living_ids(self.heap, self.clock())

    def objects(self) -> Iterator[MemoryObject]:
        """Yield all objects, each as it is when its turn comes."""
        for object_id in self.ids():
            try:
                found = self.peek(object_id)
            except UnknownObject:
                continue  # it went before its turn
            yield found

    def retrieve(
        self,
        query: str,
        top_k: int = 5,
        *,
        tenant: str | None = None,
        filter_fn: Callable[[MemoryObject], bool] | None = None,
    ) -> list[Hit]:
        """Return the objects that match a text best, counting a use of each.

        With ``tenant``, of that tenant alone. Needs a retriever.
        """
        if self.search is None:
            raise InvalidInput("this space has no retriever; give it one to search")
        with self.writing:
            allowed = allowing(self.heap, self.clock(), tenant, filter_fn)
            found = self.search.find(query, top_k, allowed)
            hits = self._hits(found)
        for hit in hits:
            self.events.emit("retrieve_hit", id=hit.object.id, score=hit.score)
        self.events.emit("retrieve_complete", query_length=len(query), hits=len(hits))
        return hits

    # -- roots, pins, references -------------------------------------------------------------------

    @durable
    def add_root(self, object_id: str) -> None:
        """Keep an object, and all that it leads to."""
        self._flag(object_id, ROOT, on=True)

    @durable
    def remove_root(self, object_id: str) -> None:
        """Keep it no longer for being a root."""
        self._flag(object_id, ROOT, on=False)

    @durable
    def pin(self, object_id: str) -> None:
        """Shield an object, and all that it leads to, from collection."""
        self._flag(object_id, PINNED, on=True)

    @durable
    def unpin(self, object_id: str) -> None:
        """Take the shield away."""
        self._flag(object_id, PINNED, on=False)

    def is_pinned(self, object_id: str) -> bool:
        """Tell whether an object is pinned."""
        with self.reading:
            return bool(self.heap.table.flags[self.slot(object_id)] & PINNED)

    def is_root(self, object_id: str) -> bool:
        """Tell whether an object is a root."""
        with self.reading:
            return bool(self.heap.table.flags[self.slot(object_id)] & ROOT)

    @durable
    def add_reference(self, source_id: str, target_id: str) -> None:
        """Let one object refer to another: while the one is kept, so is the other."""
        self._link(source_id, target_id, on=True)

    @durable
    def remove_reference(self, source_id: str, target_id: str) -> None:
        """Take a reference back."""
        self._link(source_id, target_id, on=False)

    def references(self, object_id: str) -> list[str]:
        """Return the ids an object refers to."""
        with self.reading:
            return target_ids(self.heap, self.slot(object_id), self.clock())

    def reachable_ids(self) -> set[str]:
        """Return the ids of all objects that roots and pinned objects lead to."""
        with self.reading:
            return reachable_ids(self.heap)

    # -- collecting --------------------------------------------------------------------------------

    @durable
    def run_gc(self, trigger: str = "manual") -> GCEvent:
        """Run a whole cycle now and return its report."""
        return self.collecting.run(trigger)

    @durable
    def gc_step(self, seconds: float | None = None) -> bool:
        """Do a slice of collection, beginning a cycle if none is under way; tell if it ended."""
        if self.collecting.cycle is None:
            self.collecting.begin("step")
        return self.collecting.advance(self.options.pause if seconds is None else seconds)

    def explain_gc(self) -> list[Condemned]:
        """Return who would go if a cycle ran now, and why. Nothing changes."""
        with self.writing:
            return condemned(self.heap, self.options.collectors, self.clock())

    @property
    def gc_events(self) -> deque[GCEvent]:
        """The reports of the newest cycles that ended, the oldest first."""
        return self.collecting.reports

    @property
    def cycles_run(self) -> int:
        """How many cycles have ended."""
        return self.collecting.cycles_run

    @durable
    def tick(self) -> None:
        """Look whether something is due and do a slice of it. Stores do this now and then."""
        self.look_after(now=True)

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
        """Write a checkpoint and drop the journal before the oldest one kept; return its lsn.

        It holds every change that was made before the call. Others may go on working: they are
        stopped for slices of ``pause`` only.
        """
        wanted = self.last_lsn
        while (lsn := self.imaging.complete()) < wanted:
            pass  # that one had been captured, for itself, before the last change
        return lsn

    def scrub(self) -> int:
        """Leave no byte of what was freed before this call in any file; return the oldest lsn kept.

        The past before the scrub can no longer be looked at or restored, whatever ``keep`` says.
        It takes time in proportion to what lives, and room on the disk for a copy of it. Others
        may go on working: they are stopped for slices of ``pause``, for a few syncs while files
        are dropped, and where they need the cold tier while that is rewritten. If it fails, or the
        process dies, all that lives is there; scrub again.
        """
        return scrub(self)

    def flush(self) -> None:
        """Make every change so far outlive a power cut, whatever the journal's policy."""
        if self.wal is not None:
            self.wal.sync()

    def close(self) -> None:
        """Finish what is under way and give everything back."""
        with self.writing:
            if self._closed:
                return
            self._closed = True
            self.abandon_work()
            self.let_go()

    def let_go(self) -> None:
        """Give back what was opened here; what was handed in stays open."""
        try:
            if self._folder is not None:
                self._close_folder(self._folder)
            elif self.wal is not None:
                self.wal.sync()
        finally:
            self.heap.space.close()

    # -- figures -----------------------------------------------------------------------------------

    def usage(self, tenant: str) -> int:
        """Return how many bytes a tenant's objects take."""
        with self.reading:
            return self.heap.tenants.used(tenant)

    def stats(self) -> dict[str, Any]:
        """Return the figures of this moment; constant time."""
        with self.reading:
            space = self.heap.space
            return {
                "objects": self.heap.table.live,
                "pinned": self.heap.pinned,
                "roots": self.heap.roots,
                "heap_capacity": space.capacity,
                "heap_used": space.allocated(),
                "heap_free": space.available(),
                "fragmentation": space.fragmentation(),
                "weight": self.heap.weight,
                "gc_cycles": self.collecting.cycles_run,
                "gc_running": self.collecting.cycle is not None,
                "last_lsn": self.heap.lsn,
            }

    def debug_snapshot(self) -> dict[str, Any]:
        """Return the figures, the map of the heap, roots, pins and references, for a look."""
        with self.reading:
            return {**self.stats(), **layout(self.heap, self.clock())}

    def compact(self) -> int:
        """Slide all objects together; return how many bytes moved."""
        with self.writing:
            return self.heap.compact()

    def check(self) -> None:
        """Verify every invariant; for tests, it looks at everything."""
        with self.writing:
            self.heap.check()
            if self.search is not None:
                self.search.check()

    # -- behind the scenes -------------------------------------------------------------------------

    def _close_folder(self, folder: SpaceFolder) -> None:
        """Make the changes safe, then keep an index that knows of them."""
        try:
            folder.wal.close()
            if self.search is not None:
                self.search.save()
        finally:
            folder.close()

    def _store(self, objects: Sequence[NewObject]) -> list[MemoryObject]:
        cycles = self.collecting.cycles_run
        stored = [self.object(slot) for slot in self.insert(objects)]
        for obj in stored:
            self._tell_stored(obj, cycles)
        return stored

    def _tell_stored(self, stored: MemoryObject, cycles: int) -> None:
        self.events.emit(
            "allocation" if self.collecting.cycles_run == cycles else "allocation_post_gc",
            id=stored.id,
            size=stored.size,
            heap_used=self.heap.space.allocated(),
        )

    def _flag(self, object_id: str, flag: int, *, on: bool) -> None:
        slot = self.slot(object_id)
        if bool(self.heap.table.flags[slot] & flag) is not on:
            self.collecting.maybe_garbage |= not on
            self.change([Flagged(self.heap.table.handle[slot], flag, on)])

    def _link(self, source_id: str, target_id: str, *, on: bool) -> None:
        handles = self.heap.table.handle
        source, target = self.slot(source_id), handles[self.slot(target_id)]
        if self.heap.references.has(source, target) is not on:
            self.collecting.maybe_garbage |= not on
            self.change([Linked(handles[source], target, on)])

    def _hits(self, found: list[tuple[int, float]]) -> list[Hit]:
        table, now, hits = self.heap.table, self.clock(), []
        for handle, score in found:
            slot = handle & SLOT_MASK
            table.uses[slot] += 1
            table.accessed[slot] = now
            hits.append(Hit(self.object(slot), score))
        return hits
