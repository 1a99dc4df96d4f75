"""Read-only queries on a heap: living ids, references, layout, and what a collection would free."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..gc.collectors import GarbageCollector
from .heap import Heap
from .object import MemoryObject
from .table import PINNED, ROOT, SLOT_MASK


class Hit(NamedTuple):
    """An object that ``retrieve`` found, and how well it matches the query."""

    object: MemoryObject
    score: float


class Condemned(NamedTuple):
    """An object that a collection would free: why, by which collector, how many bytes."""

    id: str
    reason: str
    collector: str
    size: int


def living_ids(heap: Heap, now: float) -> list[str]:
    """Return the ids of all objects that have not expired."""
    expires = heap.table.expires
    return [heap.id_of(slot) for slot in heap.table.living() if expires[slot] > now]


def target_ids(heap: Heap, slot: int, now: float) -> list[str]:
    """Return the ids of the objects that an object refers to."""
    expires = heap.table.expires
    slots = [handle & SLOT_MASK for handle in heap.references.targets(slot)]
    return [heap.id_of(slot) for slot in slots if expires[slot] > now]


def reachable_ids(heap: Heap) -> set[str]:
    """Return the ids of all objects that roots and pinned objects lead to."""
    seen = set(heap.table.rooted(0, heap.table.rows))
    waiting = list(seen)
    while waiting:
        for handle in heap.references.targets(waiting.pop()):
            if handle & SLOT_MASK not in seen:
                seen.add(handle & SLOT_MASK)
                waiting.append(handle & SLOT_MASK)
    return {heap.id_of(slot) for slot in seen}


def layout(heap: Heap, now: float) -> dict[str, Any]:
    """Return the map of the heap, roots, pins and references."""
    table, names = heap.table, heap.id_of
    living = [slot for slot in table.living() if table.expires[slot] > now]
    return {
        "heap_map": heap.space.snapshot(),
        "root_ids": [names(slot) for slot in living if table.flags[slot] & ROOT],
        "pinned_ids": [names(slot) for slot in living if table.flags[slot] & PINNED],
        "references": {
            names(slot): target_ids(heap, slot, now) for slot in living if table.edges[slot] >= 0
        },
    }


def allowing(
    heap: Heap,
    now: float,
    tenant: str | None,
    filter_fn: Callable[[MemoryObject], bool] | None,
) -> Callable[[int], bool]:
    """Return a predicate: may a search find the object with this handle?"""
    table = heap.table
    number = None if tenant is None else heap.tenants.names.find(tenant)

    def allowed(handle: int) -> bool:
        slot = table.slot_of(handle)
        if (
            slot < 0
            or table.expires[slot] <= now
            or (tenant is not None and table.tenant[slot] != number)
        ):
            return False
        return filter_fn is None or filter_fn(heap.object(slot, heap.body_of(slot)))

    return allowed


def condemned(heap: Heap, collectors: Sequence[GarbageCollector], now: float) -> list[Condemned]:
    """Return what these collectors would free now, and why."""
    seen, found = set[int](), []
    for collector in collectors:
        for verdict in collector.explain(heap, now, frozenset(seen)):
            if verdict is not None and verdict.handle not in seen:
                seen.add(verdict.handle)
                slot = verdict.handle & SLOT_MASK
                size = heap.table.size[slot]
                found.append(Condemned(heap.id_of(slot), verdict.reason, collector.name, size))
    return found
