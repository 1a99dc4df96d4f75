"""``GCScheduler``: starts collections, runs them in slices, and keeps their reports.

A collection runs in slices between the program's own calls, or until enough space is free.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import Protocol

from ...events import EventStream
from ..heap.heap import Heap
from ..heap.lower_tier import LowerTier
from ..options import EngineOptions
from .collectors import GarbageCollector
from .cycles import Cycle, GCEvent
from .policies import HeapFigures

_REMEMBERED_CYCLES = 1000


class CollectedSpace(HeapFigures, Protocol):
    """What a collection needs of a space. An ``Engine`` has all of it."""

    heap: Heap
    options: EngineOptions
    events: EventStream
    clock: Callable[[], float]
    lower_tier: LowerTier

    def free(self, handles: list[int], reason: str) -> None:
        """Free living objects in one step."""


class GCScheduler:
    """The collections of a space. Call it with the lock of the space held."""

    def __init__(self, space: CollectedSpace) -> None:
        self._space = space
        self.cycle: Cycle | None = None  # in progress
        self.reports: deque[GCEvent] = deque(maxlen=_REMEMBERED_CYCLES)
        self.cycles_run = 0
        self.maybe_garbage = True  # there may be garbage since the last full cycle
        self.has_worked = False  # whether a slice was run since the last look

    def begin_if_due(self) -> None:
        """Start a collection if none is in progress and a policy or an expiry asks for one."""
        if self.cycle is not None:
            return
        for policy in self._space.options.policies:
            if policy.should_trigger(self._space, "tick"):
                self.begin(type(policy).__name__)
                return
        due = self._due()
        if due:
            self.cycle = self._expiry(due)

    def begin(self, trigger: str) -> None:
        """Start a collection by all collectors."""
        space = self._space
        self.maybe_garbage = False
        self.cycle = Cycle(space.heap, space.options.collectors, space.free, trigger, space.clock())

    def advance(self, seconds: float, enough: Callable[[], bool] | None = None) -> bool:
        """Continue the collection in progress; return whether it has ended."""
        assert self.cycle is not None
        self.has_worked = True
        try:
            pause = self.cycle.advance(seconds, enough)
        except BaseException:
            self.cycle = None
            raise
        self._space.events.emit("gc_slice", pause=pause)
        if not self.cycle.done:
            return False
        event, self.cycle = self.cycle.event, None
        self._report(event)
        return True

    def run(self, trigger: str) -> GCEvent:
        """Finish the collection in progress, then run a whole one; return its report."""
        if self.cycle is not None:
            self.advance(math.inf)
        self.begin(trigger)
        self.advance(math.inf)
        return self.reports[-1]

    def expire(self, enough: Callable[[], bool]) -> None:
        """Free what has expired, until ``enough()``."""
        due = self._due()
        if due:
            self._space.lower_tier.wait()
            cycle = self._expiry(due)
            cycle.advance(math.inf, enough)
            cycle.abandon()

    def collect(self, enough: Callable[[], bool]) -> None:
        """Collect until ``enough()``: finish the cycle in progress first, then, if that does not
        suffice, run one that sees everything that has become garbage since."""
        self._space.lower_tier.wait()
        for _ in range(2):
            if self.cycle is None:
                if not self.maybe_garbage:
                    return
                self.begin("pressure")
            self.advance(math.inf, enough)
            if enough():
                return

    def abandon(self) -> None:
        """Stop the collection in progress; what it freed stays freed."""
        if self.cycle is not None:
            self.cycle.abandon()
            self.cycle = None

    def _due(self) -> list[GarbageCollector]:
        heap, now = self._space.heap, self._space.clock()
        return [each for each in self._space.options.collectors if each.should_trigger(heap, now)]

    def _expiry(self, due: list[GarbageCollector]) -> Cycle:
        space = self._space
        return Cycle(space.heap, due, space.free, "expiry", space.clock())

    def _report(self, event: GCEvent) -> None:
        space = self._space
        event.timestamp = space.clock()
        event.heap_used = space.heap.space.allocated()
        event.fragmentation = space.heap.space.fragmentation()
        self.reports.append(event)
        self.cycles_run += 1
        for policy in space.options.policies:
            policy.notify_gc(space, event)
        space.events.emit(
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
