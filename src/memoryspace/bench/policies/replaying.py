"""Trace replay through a paging policy, or through a collection policy.

Paging: a page table of a given size in bytes, as in the tiers; no data is moved. ``farthest`` knows
the future: the object whose next use is farthest away goes first. No online policy can be expected
to do better; ``farthest`` is optimal except that objects differ in size.

Collection: a real space, in which objects that the agent dropped are no longer roots and must be
found by the collector. Time is the trace's. The duration of a cycle is modelled, not measured, so
that runs are reproducible: a cost for each object visited, and for each freed.
"""

from __future__ import annotations

import heapq
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from ...kernel import (
    BanditGCPolicy,
    MarkAndSweepCollector,
    MemoryManager,
    MemorySpace,
    PageTable,
    Runtime,
)
from ..memories.managed import Steps
from .traces import ENDED, STORED, USED, TraceStep

PAGE = 64  # bytes
FARTHEST = "farthest"
LOOK, FREE = 1.5e-6, 6e-6  # seconds per object visited, and per object freed
ASK_EVERY = 16  # steps between two decisions whether to collect, as in a space


class Paged(ABC):
    """Decides which objects are hot."""

    hits = faults = evictions = writes = 0

    @abstractmethod
    def stored(self, step: TraceStep) -> None:
        """Add a new object: hot, without a cold copy."""

    @abstractmethod
    def used(self, step: TraceStep, size: int) -> None:
        """Access an object: a hit, or a fault that brings it in."""

    @abstractmethod
    def ended(self, step: TraceStep) -> None:
        """Remove an object for good."""


class PolicyPaged(Paged):
    """The tiers' own page table with one of its policies."""

    def __init__(self, strategy: str, hot: int) -> None:
        self._table = PageTable(PAGE, strategy, max_pages=max(1, hot // PAGE))
        self._cold: set[int] = set()  # too big, or evicted

    def stored(self, step: TraceStep) -> None:
        """Evict as needed, then add."""
        if not self._table.fits(step.size):
            return
        self._write(self._table.make_room(step.size))
        self._table.add(step.key, step.size)

    def used(self, step: TraceStep, size: int) -> None:
        """Touch it or bring it in."""
        if not self._table.fits(size):
            self.faults += 1
            return
        hot = self._table.is_resident(step.key)
        self.hits += hot
        self.faults += not hot
        self._write(self._table.ensure_resident(step.key, size))

    def ended(self, step: TraceStep) -> None:
        """Remove it."""
        if self._table.is_resident(step.key) or self._table.is_dirty(step.key):
            self._table.remove(step.key)

    def _write(self, victims: Sequence[int]) -> None:
        self.evictions += len(victims)
        for key in victims:
            if self._table.is_dirty(key):
                self._table.clear_dirty(key)
                self.writes += 1


class FarthestPaged(Paged):
    """Knows the whole trace: the object whose next use is last, or never, goes first."""

    def __init__(self, steps: Sequence[TraceStep], hot: int) -> None:
        self._room = max(1, hot // PAGE)
        self._next = _next_uses(steps)
        self._at = 0  # steps so far
        self._pages: dict[int, int] = {}
        self._dirty: set[int] = set()
        self._queue: list[tuple[float, int]] = []  # negated next use, object; some stale
        self._when: dict[int, float] = {}

    def stored(self, step: TraceStep) -> None:
        """Add it as dirty."""
        self._dirty.add(step.key)
        self._enter(step.key, step.size)
        self._at += 1

    def used(self, step: TraceStep, size: int) -> None:
        """Update its next use."""
        hot = step.key in self._pages
        self.hits += hot
        self.faults += not hot
        self._enter(step.key, size)
        self._at += 1

    def ended(self, step: TraceStep) -> None:
        """Free its pages."""
        self._room += self._pages.pop(step.key, 0)
        self._dirty.discard(step.key)
        self._when.pop(step.key, None)
        self._at += 1

    def _enter(self, key: int, size: int) -> None:
        if key not in self._pages:
            self._pages[key] = -(-size // PAGE) or 1
            self._room -= self._pages[key]
        self._when[key] = self._next[self._at]
        heapq.heappush(self._queue, (-self._when[key], key))
        while self._room < 0:
            self._evict()

    def _evict(self) -> None:
        use, key = heapq.heappop(self._queue)
        if key not in self._pages or self._when[key] != -use:
            return  # a stale entry
        self._room += self._pages.pop(key)
        self.evictions += 1
        if key in self._dirty:
            self._dirty.remove(key)
            self.writes += 1


def paged(strategy: str, steps: Sequence[TraceStep], hot: int) -> Paged:
    """Return the pager for this policy."""
    return FarthestPaged(steps, hot) if strategy == FARTHEST else PolicyPaged(strategy, hot)


def replay_paging(paging: Paged, steps: Sequence[TraceStep], points: int) -> list[float]:
    """Replay a trace; return the hit rate of each of ``points`` equal parts."""
    sizes: dict[int, int] = {}
    rates, every = [], max(1, len(steps) // points)
    hits = faults = 0
    for number, step in enumerate(steps, 1):
        if step.verb == STORED:
            sizes[step.key] = step.size
            paging.stored(step)
        elif step.verb == USED:
            paging.used(step, sizes[step.key])
        else:
            paging.ended(step)
        if number % every == 0:
            asked = paging.hits - hits + paging.faults - faults
            rates.append((paging.hits - hits) / asked if asked else 0.0)
            hits, faults = paging.hits, paging.faults
    return rates


def _next_uses(steps: Sequence[TraceStep]) -> list[float]:
    """Return for each step when its object is used next: a step number, or never."""
    found = [math.inf] * len(steps)
    seen: dict[int, int] = {}
    for number in range(len(steps) - 1, -1, -1):
        key = steps[number].key
        found[number] = seen.get(key, math.inf)
        if steps[number].verb == USED:
            seen[key] = number
    return found


@dataclass(frozen=True)
class Reckoned:
    """A cycle as reported to a policy."""

    freed_bytes: int
    duration: float


class GCReplay:
    """A space that follows a trace and collects when a bandit decides to.

    A bandit with a single arm is that policy; its decisions and rewards are logged in the same way.
    """

    def __init__(self, bandit: BanditGCPolicy, capacity: int) -> None:
        self.bandit = bandit
        self._clock = Steps()
        self.space = MemoryManager(
            capacity,
            collectors=(MarkAndSweepCollector(),),
            retriever=None,
            runtime=Runtime(clock=self._clock),
        )
        self._ids: dict[int, str] = {}
        self._sizes: dict[int, int] = {}
        self._garbage = 0
        self.floating: list[float] = []  # bytes of garbage at each decision
        self.peak = self.freed = self.under_pressure = 0
        self.pauses: list[float] = []  # as modelled
        self.measured: list[float] = []

    def play(self, steps: Sequence[TraceStep]) -> None:
        """Replay a trace to its end."""
        with self.space:
            for number, step in enumerate(steps, 1):
                self._clock.now = step.at
                self._follow(step)
                if number % ASK_EVERY == 0:
                    self.floating.append(self._garbage)
                    if self.bandit.should_trigger(self.space, "tick"):
                        self._collect()

    def _follow(self, step: TraceStep) -> None:
        if step.verb == STORED:
            size = MemorySpace.block_size(step.size + 64)
            if self.space.stats()["heap_free"] < 2 * size:
                self.under_pressure += 1
                self._collect()
            stored = self.space.store({"text": "x" * step.size}, root=True)
            self._ids[step.key], self._sizes[step.key] = stored.id, stored.size
            self.peak = max(self.peak, self.space.stats()["heap_used"])
        elif step.verb == USED:
            self.space.load(self._ids[step.key])
        elif step.verb == ENDED:
            self.space.remove_root(self._ids.pop(step.key))
            self._garbage += self._sizes.pop(step.key)

    def _collect(self) -> None:
        looked = len(self.space)
        event = self.space.run_gc("replay")
        reckoned = Reckoned(event.freed_bytes, looked * LOOK + event.freed * FREE)
        self.freed += event.freed_bytes
        self._garbage -= event.freed_bytes
        self.pauses.append(reckoned.duration)
        self.measured.append(event.duration)
        self.bandit.notify_gc(self.space, reckoned)
