"""``Update``: a change to one object, and the ops that make it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..limits import SpaceLimits
from .drafts import check_numbers, checked_tags
from .heap import Heap
from .object import ID_PREFIX, encode_body
from .ops import Op, RewriteOp, TuneOp


@dataclass(frozen=True)
class Update:
    """New values for an object; ``None`` keeps the old one. ``ttl`` counts from now."""

    payload: Mapping[str, Any] | None = None
    tags: Iterable[str] | None = None
    importance: float | None = None
    ttl: float | None = None

    def ops(
        self, heap: Heap, slot: int, limits: SpaceLimits, clock: Callable[[], float]
    ) -> list[Op]:
        """Return the ops, validated and checked against the limits."""
        ops, handle = list[Op](), heap.table.handle[slot]
        if self.payload is not None:
            ops.append(self._rewritten(self.payload, heap, slot, limits))
        if self.tags is not None or self.importance is not None or self.ttl is not None:
            ops.append(self._tuned(heap, slot, handle, clock))
        return ops

    def _rewritten(
        self, payload: Mapping[str, Any], heap: Heap, slot: int, limits: SpaceLimits
    ) -> RewriteOp:
        table = heap.table
        handle, size, weight = table.handle[slot], table.size[slot], table.weight[slot]
        old = heap.object(slot, heap.body_of(slot))
        name = None if old.id.startswith(ID_PREFIX) else old.id
        body = encode_body(payload, old.embedding, name)
        limits.check_quota(old.tenant, len(body) - size)
        if weight == size:  # otherwise it was declared, and stays
            weight = len(body)
            limits.check_budget(weight - size)
        return RewriteOp(handle, body, weight)

    def _tuned(self, heap: Heap, slot: int, handle: int, clock: Callable[[], float]) -> TuneOp:
        check_numbers(importance=self.importance, ttl=self.ttl)
        table = heap.table
        return TuneOp(
            handle,
            table.importance[slot] if self.importance is None else self.importance,
            table.expires[slot] if self.ttl is None else clock() + self.ttl,
            checked_tags(heap.tags.values[table.tags[slot]] if self.tags is None else self.tags),
        )
