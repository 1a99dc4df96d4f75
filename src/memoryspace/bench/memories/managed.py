"""The protocol of the compared memories, and the implementations on our managers.

``budget`` bounds the bytes of the stored texts in UTF-8, for every system. Metadata and indexes are
not counted, for any system; only the hot tier of two is charged with the bytes of its heap, which
is more. ``footprint`` reports what each really takes. ``retrieve`` returns texts that the memory
gave back; nothing else is judged.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Literal, Protocol

from ...errors import OutOfSpace
from ...kernel import (
    Durability,
    GarbageCollector,
    GCPolicy,
    GenerationalCollector,
    MarkAndSweepCollector,
    MemoryManager,
    Quotas,
    Retriever,
    Runtime,
    TieredMemoryManager,
    Tiering,
    TimeToLiveCollector,
)
from ...kernel.tiers.tiering import WritePolicy
from .footprint import Footprint, folder_bytes, reachable_bytes

Keeping = Literal["used", "newest"]

ROOM = 1 / 32  # share of the objects that lose their root at once when space runs out
ROOMY = 4  # heap bytes per budget byte, so that the budget is what limits
UNBOUNDED = 1 << 30
YOUNG = 2000.0  # stores; the clock of these memories counts stores


class Memory(Protocol):
    """A memory for texts."""

    def store(self, text: str) -> None:
        """Store a text, and drop others if needed."""

    def retrieve(self, query: str, k: int) -> list[str]:
        """Return at most ``k`` texts, best first."""

    @property
    def bytes_used(self) -> int:
        """Return how many bytes of the budget are used."""

    def figures(self) -> Mapping[str, float]:
        """Return further counters."""

    def footprint(self) -> Footprint:
        """Return the memory footprint, regardless of the budget."""

    def close(self) -> None:
        """Release all resources."""


class Steps:
    """A clock that advances one second per store."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


COLLECTORS: Mapping[str, Callable[[], Sequence[GarbageCollector]]] = {
    "none": lambda: (),
    "ttl": lambda: (TimeToLiveCollector(),),
    "mark": lambda: (MarkAndSweepCollector(),),
    "ttl_mark": lambda: (TimeToLiveCollector(), MarkAndSweepCollector()),
    "ttl_mark_gen": lambda: (
        TimeToLiveCollector(),
        MarkAndSweepCollector(),
        GenerationalCollector(young_object_age=YOUNG),
    ),
}


class ManagerMemory:
    """A ``MemoryManager`` in which every object is a root until space runs out.

    Then the least recently used (or oldest) objects lose their root and are collected. If the
    collectors do not free them, they are freed by hand.
    """

    def __init__(self, manager: MemoryManager, clock: Steps, keep: Keeping = "used") -> None:
        self.manager = manager
        self._clock = clock
        self._keep = keep
        self._roots: dict[str, None] = {}  # ids, next to lose its root first
        self._unrooted: dict[str, None] = {}  # no longer roots, perhaps not freed yet
        self._by_hand = 0

    def store(self, text: str) -> None:
        """Store an object as a root."""
        self._clock.now += 1
        while True:
            try:
                size = len(text.encode())
                stored = self.manager.store({"text": text}, size=size, root=True)
                break
            except OutOfSpace:
                if not self._roots and not self._unrooted:
                    raise
                self._make_room()
        self._roots[stored.id] = None

    def retrieve(self, query: str, k: int) -> list[str]:
        """Search; the best hit counts as used."""
        hits = self.manager.retrieve(query, k)
        if hits and self._keep == "used" and hits[0].object.id in self._roots:
            id = hits[0].object.id
            self._roots[id] = self._roots.pop(id)
        return [hit.object.payload["text"] for hit in hits]

    def keep_roots(self, count: int) -> None:
        """Limit the number of roots; the other objects may be collected."""
        while len(self._roots) > count:
            id = next(iter(self._roots))
            del self._roots[id]
            if id in self.manager:
                self._unrooted[id] = None
                self.manager.remove_root(id)

    @property
    def bytes_used(self) -> int:
        """Return the bytes of the texts."""
        used: int = self.manager.stats()["weight"]
        return used

    def figures(self) -> Mapping[str, float]:
        """Return the manager's counters."""
        stats = self.manager.stats()
        return {
            "kept": stats["objects"],
            "heap_used": stats["heap_used"],
            "gc_cycles": stats["gc_cycles"],
            "freed_by_hand": self._by_hand,
        }

    def footprint(self) -> Footprint:
        """Return the footprint; of the heap, only the used part counts."""
        heap: int = self.manager.stats()["heap_used"]
        return Footprint(reachable_bytes(self) + heap, _index_bytes(self.manager))

    def close(self) -> None:
        """Close the manager."""
        self.manager.close()

    def _make_room(self) -> None:
        """Remove roots and collect; free by hand what is left afterwards."""
        if not self._unrooted:
            self.keep_roots(len(self._roots) - max(1, int(len(self._roots) * ROOM)))
        self.manager.run_gc("no room")
        left = [id for id in self._unrooted if id in self.manager]
        going = left[: max(1, int(len(self.manager) * ROOM))]
        self._by_hand += self.manager.free_many(going) if going else 0
        self._unrooted = dict.fromkeys(left[len(going) :])


class FullMemory(ManagerMemory):
    """A ``MemoryManager`` without collectors: when it is full, it refuses new objects."""

    refused = 0

    def store(self, text: str) -> None:
        """Store an object, if it fits."""
        self._clock.now += 1
        try:
            self.manager.store({"text": text}, size=len(text.encode()), root=True)
        except OutOfSpace:
            self.refused += 1

    def figures(self) -> Mapping[str, float]:
        """Return the counters, with the number of refused stores."""
        return {**super().figures(), "refused": self.refused}


class TieredMemory:
    """A ``TieredMemoryManager``: the budget is the hot tier; the rest goes to disk."""

    def __init__(
        self,
        budget: int,
        *,
        paging_strategy: str = "arc",
        write_policy: WritePolicy = "write_back",
        promotion_batch: int = 1,
        max_hot_objects: int | None = None,
        policies: Sequence[GCPolicy] = (),
        roots: int = 0,
    ) -> None:
        self._clock = Steps()
        self._most_roots = roots
        self._roots: deque[str] = deque()
        self._folder = tempfile.mkdtemp(prefix="memoryspace-bench-")
        self.manager = TieredMemoryManager(
            budget,
            folder=self._folder,
            durability=Durability(sync="os"),
            tiering=Tiering(
                paging_strategy=paging_strategy,
                write_policy=write_policy,
                promotion_batch_size=promotion_batch,
                max_hot_objects=max_hot_objects,
                flush_interval=None,  # no thread, for reproducible runs
            ),
            policies=policies,
            runtime=Runtime(clock=self._clock),
        )

    def store(self, text: str) -> None:
        """Store an object."""
        self._clock.now += 1
        stored = self.manager.store({"text": text}, root=self._most_roots > 0)
        if self._most_roots:
            self._roots.append(stored.id)
            if len(self._roots) > self._most_roots:
                self.manager.remove_root(self._roots.popleft())

    def retrieve(self, query: str, k: int) -> list[str]:
        """Search both tiers."""
        return [hit.object.payload["text"] for hit in self.manager.retrieve(query, k)]

    @property
    def bytes_used(self) -> int:
        """Return the bytes of the hot tier."""
        used: int = self.manager.stats()["heap_used"]
        return used

    def figures(self) -> Mapping[str, float]:
        """Return the tiers' counters."""
        stats = self.manager.stats()
        names = ("hot_hits", "cold_hits", "hit_rate", "promotions", "demotions", "page_faults",
                 "page_evictions", "page_writes", "cold_items")  # fmt: skip
        return {"kept": stats["objects"], **{name: stats[name] for name in names}}

    def footprint(self) -> Footprint:
        """Return hot tier, tables and index in memory; journal and cold tier on disk."""
        return Footprint(
            reachable_bytes(self) + self.bytes_used,
            _index_bytes(self.manager),
            folder_bytes(self._folder),
        )

    def close(self) -> None:
        """Close the manager and remove its folder."""
        self.manager.close()
        with suppress(OSError):
            shutil.rmtree(self._folder)


def _index_bytes(manager: MemoryManager) -> int | None:
    search = manager.engine.search
    return None if search is None else reachable_bytes(search.retriever)


def managed(
    budget: int,
    *,
    collectors: str = "ttl_mark",
    keep: Keeping = "used",
    index: Retriever | None = None,
) -> ManagerMemory:
    """Return a manager for this many bytes of text."""
    clock = Steps()
    manager = MemoryManager(
        min(UNBOUNDED, ROOMY * budget + 65_536),
        quotas=Quotas(budget=budget),
        collectors=COLLECTORS[collectors](),
        retriever="sparse" if index is None else index,
        runtime=Runtime(clock=clock),
    )
    return ManagerMemory(manager, clock, keep)


def uncollected(budget: int) -> FullMemory:
    """Return a manager without collectors for this many bytes of text."""
    clock = Steps()
    manager = MemoryManager(
        ROOMY * budget + 65_536,
        quotas=Quotas(budget=budget),
        collectors=(),
        runtime=Runtime(clock=clock),
    )
    return FullMemory(manager, clock)
