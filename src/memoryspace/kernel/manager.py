"""``MemoryManager``: objects in a bounded heap, with references, collection and a journal.

All methods may be called from any thread. A method that changes something returns when the
journal's policy calls the change safe. The engine (``engine.py``) makes the changes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, Literal

from ..errors import InvalidInput, UnknownObject
from ..lifecycle import ClosingNow
from .acknowledging import durable
from .durable.checkpoints import CheckpointManager
from .durable.folder import Durability, SpaceFiles, SpaceFolder
from .durable.journal import WriteAheadLog
from .durable.scrubbing import scrub
from .engine import Engine, unknown
from .gc.collectors import GarbageCollector, default_collectors
from .gc.cycles import GCEvent
from .gc.policies import GCPolicy
from .heap.allocators import Allocator
from .heap.drafts import NewObject
from .heap.object import ID_PREFIX, MemoryObject
from .heap.ops import FlagOp, LinkOp
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
from .heap.table import PINNED, ROOT
from .heap.updating import Update
from .index.searching import Retriever
from .options import EngineOptions, Quotas, Runtime

__all__ = ["Condemned", "Hit", "MemoryManager"]


class MemoryManager(ClosingNow):
    """Objects in a heap of ``capacity`` bytes.

    When something does not fit, the manager frees what has expired, collects garbage, compacts the
    heap, and only then refuses. Everything is kept in RAM unless there is a ``folder``.

    Args:
        capacity: How many bytes the heap has.
        allocator: Places blocks in the heap (default: segregated fits).
        collectors: Decide which objects are freed (default: expired ones, then those that no root
            or pinned object leads to). They run in this order.
        retriever: The index behind ``retrieve``; ``None`` for a space that is never searched.
        policies: Decide when a collection starts.
        wal: A journal that you opened, instead of a ``folder``. It stays open.
        checkpoint_manager: The checkpoints that go with ``wal``.
        folder: Where to keep the space on disk. What is in it is recovered, and every change is
            journalled before it is made. One process at a time can open a folder.
        durability: When the folder's files are synced, and how far back they go.
        quotas: Limits by tenant and on declared sizes.
        runtime: Clock, events, lock, and how long a slice of background work may take.

    Raises:
        OutOfSpace: What the folder holds does not fit into ``capacity``.
        FolderInUse: Another process has the folder open.
        CorruptData: The files are damaged and ``durability`` does not ask for salvage.

    Examples:
        >>> with MemoryManager(1 << 20) as space:
        ...     note = space.store({"text": "Ann is allergic to peanuts"}, root=True)
    """

    engine: Engine

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
        folder: str | PathLike[str] | None = None,
        durability: Durability | None = None,
        quotas: Quotas | None = None,
        runtime: Runtime | None = None,
    ) -> None:
        durability = Durability() if durability is None else durability
        options = EngineOptions(
            capacity=capacity,
            allocator=allocator,
            collectors=tuple(default_collectors() if collectors is None else collectors),
            policies=tuple(policies),
            retriever=retriever,
            quotas=Quotas() if quotas is None else quotas,
            runtime=(Runtime() if runtime is None else runtime).with_events(),
            checkpoint_bytes=durability.checkpoint_bytes,
        )
        files = open_files(options.runtime, folder, durability, wal, checkpoint_manager)
        self._run_on(Engine(options, files))

    def _run_on(self, engine: Engine) -> None:
        self.engine = engine
        self.events = engine.events

    def __repr__(self) -> str:
        heap = self.engine.heap
        return (
            f"<{type(self).__name__}: {heap.table.live} objects, "
            f"{heap.space.allocated()} of {heap.space.capacity} bytes>"
        )

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
        """Store a payload and return the object.

        Args:
            payload: Plain data: text, numbers, bytes, lists and dicts of these.
            size: What the object counts against ``Quotas.budget`` (default: its bytes).
            tags: Labels that are kept with the object.
            importance: A finite number; collectors may spare what is important.
            ttl: Seconds until the object expires (default: never).
            embedding: A vector to keep with the object.
            pin: Protect the object, and everything it leads to, from collection.
            root: Keep the object, and everything it leads to, until ``remove_root``.
            tenant: The tenant whose quota the object counts against.
            id: An id of your own (default: one is made).

        Raises:
            OutOfSpace: The object does not fit, even after a collection.
            NotSerializable: The payload is not plain data.
            InvalidInput: An argument is out of range, or ``id`` is taken.

        If it raises, nothing was stored.
        """
        new = NewObject(payload, size, tags, importance, ttl, embedding, pin, root, tenant, id)
        engine = self.engine
        cycles = engine.collecting.cycles_run
        stored = engine.object(engine.insert_one(new))
        self._emit_stored(stored, cycles)
        return stored

    @durable
    def store_many(self, objects: Iterable[NewObject]) -> list[MemoryObject]:
        """Store several objects. If it raises, none of them was stored."""
        return self._store(list(objects))

    @durable
    def store_existing(self, obj: MemoryObject) -> MemoryObject:
        """Store a copy of another space's object, under the same id if that was chosen for it."""
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
        """Change what is passed and keep the rest, including the id and all references.

        Args:
            object_id: The object to change.
            payload: The new payload.
            tags: The new tags, instead of the old ones.
            importance: The new importance.
            ttl: Seconds until the object expires, counted from now.

        Raises:
            UnknownObject: There is no such object.
            OutOfSpace: The new payload does not fit.
        """
        engine = self.engine
        heap, slot = engine.heap, engine.slot(object_id)
        same = heap.body_of(slot) if payload is None else None  # read before it changes
        update = Update(payload, tags, importance, ttl)
        engine.change(update.ops(heap, slot, engine.limits, engine.clock))
        if payload is not None and engine.search is not None:
            engine.search.add(slot, payload)
        return heap.object(slot, heap.body_of(slot) if same is None else same)

    @durable
    def free_object(self, object_id: str) -> None:
        """Free an object, even if others refer to it; ``UnknownObject`` if there is none."""
        engine = self.engine
        engine.free([engine.heap.table.handle[engine.slot(object_id)]], "freed")

    @durable
    def free_many(self, object_ids: Iterable[str]) -> int:
        """Free several objects in one step and return how many existed."""
        heap = self.engine.heap
        slots = {heap.find(object_id) for object_id in object_ids} - {-1}
        self.engine.expect(len(slots))
        if slots:
            self.engine.free([heap.table.handle[slot] for slot in sorted(slots)], "freed")
        return len(slots)

    # -- reading -----------------------------------------------------------------------------------

    def load(self, object_id: str) -> MemoryObject:
        """Return an object and count a use; ``UnknownObject`` if there is none."""
        engine = self.engine
        with engine.reading:
            heap, now = engine.heap, engine.clock()
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
        """Return an object without counting a use. Scans should use this."""
        engine = self.engine
        with engine.reading:
            return engine.object(engine.slot(object_id))

    def __contains__(self, object_id: object) -> bool:
        engine = self.engine
        with engine.reading:
            slot = engine.heap.find(object_id) if isinstance(object_id, str) else -1
            return slot >= 0 and engine.heap.table.expires[slot] > engine.clock()

    def __len__(self) -> int:
        return self.engine.heap.table.live

    def __bool__(self) -> bool:
        return True  # an empty manager is a manager

    def ids(self) -> list[str]:
        """Return the ids of all objects."""
        engine = self.engine
        with engine.reading:
            return living_ids(engine.heap, engine.clock())

    def objects(self) -> Iterator[MemoryObject]:
        """Yield all objects, each read when its turn comes. Those freed before that are skipped."""
        for object_id in self.ids():
            try:
                found = self.peek(object_id)
            except UnknownObject:
                continue
            yield found

    def retrieve(
        self,
        query: str,
        top_k: int = 5,
        *,
        tenant: str | None = None,
        filter_fn: Callable[[MemoryObject], bool] | None = None,
    ) -> list[Hit]:
        """Return the objects that match a text best and count a use of each.

        Args:
            query: The text to search for.
            top_k: The most objects to return.
            tenant: Search the objects of this tenant only.
            filter_fn: Search only objects for which this returns true.

        Returns:
            Objects with their scores, best first.

        Raises:
            InvalidInput: The space has no retriever.
        """
        engine = self.engine
        if engine.search is None:
            raise InvalidInput("this space has no retriever; pass retriever= to search it")
        with engine.writing:
            allowed = allowing(engine.heap, engine.clock(), tenant, filter_fn)
            hits = engine.hits(engine.search.find(query, top_k, allowed))
        for hit in hits:
            self.events.emit("retrieve_hit", id=hit.object.id, score=hit.score)
        self.events.emit("retrieve_complete", query_length=len(query), hits=len(hits))
        return hits

    # -- roots, pins, references -------------------------------------------------------------------

    @durable
    def add_root(self, object_id: str) -> None:
        """Make an object a root: it and everything it leads to are kept."""
        self._flag(object_id, ROOT, on=True)

    @durable
    def remove_root(self, object_id: str) -> None:
        """Make an object a root no longer."""
        self._flag(object_id, ROOT, on=False)

    @durable
    def pin(self, object_id: str) -> None:
        """Protect an object, and everything it leads to, from collection."""
        self._flag(object_id, PINNED, on=True)

    @durable
    def unpin(self, object_id: str) -> None:
        """End the protection that ``pin`` gave."""
        self._flag(object_id, PINNED, on=False)

    def is_pinned(self, object_id: str) -> bool:
        """Return whether an object is pinned."""
        return self._has_flag(object_id, PINNED)

    def is_root(self, object_id: str) -> bool:
        """Return whether an object is a root."""
        return self._has_flag(object_id, ROOT)

    @durable
    def add_reference(self, source_id: str, target_id: str) -> None:
        """Let one object refer to another. The target is kept for as long as the source is."""
        self._link(source_id, target_id, on=True)

    @durable
    def remove_reference(self, source_id: str, target_id: str) -> None:
        """Remove a reference."""
        self._link(source_id, target_id, on=False)

    def references(self, object_id: str) -> list[str]:
        """Return the ids of the objects that an object refers to."""
        engine = self.engine
        with engine.reading:
            return target_ids(engine.heap, engine.slot(object_id), engine.clock())

    def reachable_ids(self) -> set[str]:
        """Return the ids of all objects that roots and pinned objects lead to."""
        with self.engine.reading:
            return reachable_ids(self.engine.heap)

    # -- collecting --------------------------------------------------------------------------------

    @durable
    def run_gc(self, trigger: str = "manual") -> GCEvent:
        """Run a whole collection now and return its report."""
        return self.engine.collecting.run(trigger)

    @durable
    def gc_step(self, seconds: float | None = None) -> bool:
        """Run one slice of collection, starting one if needed; return whether it has ended."""
        collecting = self.engine.collecting
        if collecting.cycle is None:
            collecting.begin("step")
        return collecting.advance(self.engine.options.pause if seconds is None else seconds)

    def explain_gc(self) -> list[Condemned]:
        """Return what a collection would free now, and why. Nothing changes."""
        engine = self.engine
        with engine.writing:
            return condemned(engine.heap, engine.options.collectors, engine.clock())

    @property
    def gc_events(self) -> deque[GCEvent]:
        """The reports of the latest collections, oldest first."""
        return self.engine.collecting.reports

    @property
    def cycles_run(self) -> int:
        """How many collections have ended."""
        return self.engine.collecting.cycles_run

    @durable
    def tick(self) -> None:
        """Check whether background work is due and run a slice of it, as changes do now and then.

        Raises:
            StoreError: The background work failed.
        """
        self.engine.do_upkeep(now=True)

    # -- durability --------------------------------------------------------------------------------

    def checkpoint(self) -> int:
        """Write a checkpoint, drop the journal that no kept checkpoint needs, return its lsn.

        It holds every change made before the call. Other threads go on working: they wait for
        slices of ``Runtime.pause`` only.
        """
        return self.engine.checkpoint()

    def scrub(self) -> int:
        """Erase from every file what was freed before this call.

        The past before the scrub can no longer be read or restored, whatever ``Durability.keep``
        says. The scrub takes time in proportion to what is stored, and disk space for a copy of
        it. Other threads go on working. They wait for slices of ``Runtime.pause``, for a few syncs
        while files are dropped, and for the cold tier while it is rewritten. If the scrub fails or
        the process dies, nothing that is stored is lost; scrub again.

        Returns:
            The oldest lsn that can still be restored.

        Raises:
            InvalidInput: The space has a journal but no checkpoint manager.
        """
        return scrub(self.engine)

    def flush(self) -> None:
        """Sync the journal, so that every change so far survives a power cut."""
        if self.engine.wal is not None:
            self.engine.wal.sync()

    def close(self) -> None:
        """Stop background work and close what this manager opened."""
        self.engine.close()

    # -- figures -----------------------------------------------------------------------------------

    @property
    def wal(self) -> WriteAheadLog | None:
        """The journal, or ``None`` for a space in RAM."""
        return self.engine.wal

    @property
    def checkpoint_manager(self) -> CheckpointManager | None:
        """The checkpoints, or ``None`` for a space without any."""
        return self.engine.checkpoint_manager

    @property
    def last_lsn(self) -> int:
        """The log sequence number of the last change."""
        return self.engine.heap.lsn

    @property
    def capacity(self) -> int:
        """How many bytes the heap has."""
        return self.engine.capacity

    @property
    def live_objects(self) -> int:
        """How many objects there are."""
        return self.engine.live_objects

    @property
    def now(self) -> float:
        """The time on the space's clock."""
        return self.engine.now

    def fragmentation(self) -> float:
        """Return how scattered the free bytes of the heap are, from 0 to 1."""
        return self.engine.fragmentation()

    def usage(self, tenant: str) -> int:
        """Return how many bytes a tenant's objects take."""
        with self.engine.reading:
            return self.engine.heap.tenants.used(tenant)

    def stats(self) -> dict[str, Any]:
        """Return the current figures, in constant time."""
        engine = self.engine
        with engine.reading:
            heap, space = engine.heap, engine.heap.space
            return {
                "objects": heap.table.live,
                "pinned": heap.pinned,
                "roots": heap.roots,
                "heap_capacity": space.capacity,
                "heap_used": space.allocated(),
                "heap_free": space.available(),
                "fragmentation": space.fragmentation(),
                "weight": heap.weight,
                "gc_cycles": engine.collecting.cycles_run,
                "gc_running": engine.collecting.cycle is not None,
                "last_lsn": heap.lsn,
            }

    def debug_snapshot(self) -> dict[str, Any]:
        """Return ``stats`` with a map of the heap, roots, pins and references."""
        engine = self.engine
        with engine.reading:
            return {**self.stats(), **layout(engine.heap, engine.clock())}

    def compact(self) -> int:
        """Slide all objects together and return how many bytes moved."""
        with self.engine.writing:
            return self.engine.heap.compact()

    def check(self) -> None:
        """Verify every invariant. Meant for tests: it reads everything."""
        self.engine.check()

    # -- internals ---------------------------------------------------------------------------------

    def _store(self, objects: Sequence[NewObject]) -> list[MemoryObject]:
        engine = self.engine
        cycles = engine.collecting.cycles_run
        stored = [engine.object(slot) for slot in engine.insert(objects)]
        for obj in stored:
            self._emit_stored(obj, cycles)
        return stored

    def _emit_stored(self, stored: MemoryObject, cycles: int) -> None:
        engine = self.engine
        self.events.emit(
            "allocation" if engine.collecting.cycles_run == cycles else "allocation_post_gc",
            id=stored.id,
            size=stored.size,
            heap_used=engine.heap.space.allocated(),
        )

    def _has_flag(self, object_id: str, flag: int) -> bool:
        engine = self.engine
        with engine.reading:
            return bool(engine.heap.table.flags[engine.slot(object_id)] & flag)

    def _flag(self, object_id: str, flag: int, *, on: bool) -> None:
        engine = self.engine
        table, slot = engine.heap.table, engine.slot(object_id)
        if bool(table.flags[slot] & flag) is not on:
            engine.collecting.maybe_garbage |= not on
            engine.change([FlagOp(table.handle[slot], flag, on)])

    def _link(self, source_id: str, target_id: str, *, on: bool) -> None:
        engine = self.engine
        handles = engine.heap.table.handle
        source, target = engine.slot(source_id), handles[engine.slot(target_id)]
        if engine.heap.references.has(source, target) is not on:
            engine.collecting.maybe_garbage |= not on
            engine.change([LinkOp(handles[source], target, on)])


def open_files(
    runtime: Runtime,
    folder: str | PathLike[str] | None,
    durability: Durability,
    wal: WriteAheadLog | None,
    checkpoint_manager: CheckpointManager | None,
) -> SpaceFiles:
    """Open the files in a folder, or return those that were passed in."""
    if folder is None:
        return SpaceFiles(wal, checkpoint_manager)
    opened = SpaceFolder(folder, durability, events=runtime.events, clock=runtime.clock)
    return SpaceFiles.in_folder(opened)
