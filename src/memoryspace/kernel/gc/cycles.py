"""One garbage collection cycle, from its first slice to its report.

A cycle holds the unfinished work of its collectors. ``advance`` lets them work for a slice of time
and frees what they condemned before it returns, so a verdict is never older than its slice.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ..heap.heap import Heap
from ..heap.object import id_of
from ..heap.table import SLOT_MASK
from .collectors import GarbageCollector, GCVerdict, GCVerdicts

_BATCH = 8  # objects freed by one journal frame; some 0.1 ms of work


@dataclass
class GCEvent:
    """The report of a collection cycle.

    Attributes:
        trigger: What started it: ``"manual"``, ``"pressure"``, ``"expiry"``, a policy's name, ….
        timestamp: When it ended.
        freed_handles: The handles of the freed objects.
        freed_names: The ids of those whose callers chose one, by handle.
        freed_bytes: How many bytes their bodies took.
        collected: How many objects each collector freed.
        reasons: How many objects were freed for each reason.
        heap_used: How many bytes were allocated afterwards.
        fragmentation: How scattered the free bytes were afterwards, from 0 to 1.
        pause_duration: The longest slice in seconds.
        duration: All slices together in seconds.
        slices: How many slices it took.
    """

    trigger: str
    timestamp: float = 0.0
    freed_handles: list[int] = field(default_factory=list)
    freed_names: dict[int, str] = field(default_factory=dict)
    freed_bytes: int = 0
    collected: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=dict)
    heap_used: int = 0
    fragmentation: float = 0.0
    pause_duration: float = 0.0
    duration: float = 0.0
    slices: int = 0

    @property
    def freed(self) -> int:
        """How many objects the cycle freed."""
        return len(self.freed_handles)

    @property
    def freed_ids(self) -> list[str]:
        """The ids of the freed objects, in the order in which they were freed."""
        names = self.freed_names
        return [names.get(handle) or id_of(handle) for handle in self.freed_handles]


class Cycle:
    """The work of several collectors on one heap, one after the other."""

    def __init__(
        self,
        heap: Heap,
        collectors: Sequence[GarbageCollector],
        free: Callable[[list[int], str], None],
        trigger: str,
        now: float,
    ) -> None:
        self._heap = heap
        self._free = free
        self._left = list(reversed(collectors))
        self._now = now
        self._collector: GarbageCollector | None = None
        self._verdicts: GCVerdicts | None = None
        self._by_collector: Counter[str] = Counter()
        self._reasons: Counter[str] = Counter()
        self.event = GCEvent(trigger, timestamp=now)
        self._next_collector()

    @property
    def done(self) -> bool:
        """Whether every collector has finished."""
        return self._verdicts is None

    def advance(self, seconds: float, enough: Callable[[], bool] | None = None) -> float:
        """Work for about ``seconds``, or until ``enough()``; return how long it took.

        It makes some progress however short the time is.
        """
        started = time.perf_counter()
        deadline = started + seconds
        try:
            while self._verdicts is not None:
                before = time.perf_counter()
                self._work(deadline)
                now = time.perf_counter()
                if now + (now - before) >= deadline or (enough is not None and enough()):
                    break  # the next batch would end too late
        except BaseException:
            self.abandon()
            raise
        return self._note_slice(time.perf_counter() - started)

    def abandon(self) -> None:
        """Stop in the middle; what was freed stays freed."""
        if self._verdicts is not None:
            self._verdicts.close()
            self._verdicts = None
        self._left.clear()

    def _work(self, deadline: float) -> None:
        """Gather verdicts until a batch is full or the deadline is reached, and carry them out."""
        assert self._verdicts is not None
        batch: list[GCVerdict] = []
        for verdict in self._verdicts:
            if verdict is not None:
                batch.append(verdict)
                if len(batch) == _BATCH:
                    break
            elif time.perf_counter() >= deadline:
                break
        else:
            self._next_collector_after(batch)
            return
        self._carry_out(batch)

    def _next_collector_after(self, batch: list[GCVerdict]) -> None:
        self._carry_out(batch)
        self._next_collector()

    def _next_collector(self) -> None:
        self._collector = self._left.pop() if self._left else None
        collector = self._collector
        self._verdicts = None if collector is None else collector.condemn(self._heap, self._now)

    def _carry_out(self, batch: list[GCVerdict]) -> None:
        if not batch:
            return
        assert self._collector is not None  # it gave the verdicts
        table = self._heap.table
        reason = batch[0].reason  # a collector has one
        handles = [verdict.handle for verdict in batch]
        named, size = self._names_of(handles), 0
        for handle in handles:
            size += table.size[handle & SLOT_MASK]
        try:
            self._free(handles, reason)
        except BaseException:
            for handle in handles:
                self._collector.spared(self._heap, handle)
            raise
        self.event.freed_handles += handles
        self.event.freed_names.update(named)
        self.event.freed_bytes += size
        self._by_collector[self._collector.name] += len(handles)
        self._reasons[reason] += len(handles)

    def _names_of(self, handles: list[int]) -> dict[int, str]:
        names = self._heap.names
        if not len(names):
            return {}
        return {handle: name for handle in handles if (name := names.of(handle)) is not None}

    def _note_slice(self, seconds: float) -> float:
        event = self.event
        event.slices += 1
        event.duration += seconds
        event.pause_duration = max(event.pause_duration, seconds)
        event.collected = dict(self._by_collector)
        event.reasons = dict(self._reasons)
        return seconds
