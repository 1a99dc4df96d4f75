"""Garbage collectors: each decides which objects to free, and why. The engine frees them.

``condemn`` is a generator. It yields verdicts, and ``None`` wherever it can be interrupted: the
engine lets it work for a slice of time, frees what was condemned so far, and lets the program run
until the next slice. ``explain`` yields the same verdicts without side effects.
"""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Generator, Sequence, Set
from typing import NamedTuple, TypeAlias

from ...errors import InvalidInput
from ..heap.heap import Heap
from ..heap.object import importance_score
from ..heap.references import END
from ..heap.table import LIVE, PINNED, ROOT, SLOT_MASK

_CHECK_EVERY = 64  # objects examined between two points of interruption
_ROOT_WINDOW = 2048  # rows searched for roots at once

# Rows that hold an object are white (0) when a marking begins; the others need no colour.
_WHITEN = bytes(0 if flags & LIVE else 1 for flags in range(256))


class GCVerdict(NamedTuple):
    """An object to free, and why."""

    handle: int
    reason: str


GCVerdicts: TypeAlias = Generator[GCVerdict | None, None, None]


class GarbageCollector(ABC):
    """Decides which objects are freed. Subclass it for a policy of your own.

    A collector serves one manager. ``name`` appears in reports.
    """

    name: str

    def attach(self, heap: Heap) -> None:  # noqa: B027  # most need not watch
        """Start following a heap; called when a manager opens, and after a restore."""

    @abstractmethod
    def condemn(self, heap: Heap, now: float) -> GCVerdicts:
        """Yield what to free now, and ``None`` wherever the work can be interrupted."""

    def explain(self, heap: Heap, now: float, gone: Set[int] = frozenset()) -> GCVerdicts:
        """Yield what ``condemn`` would if the objects ``gone`` were freed, without side effects."""
        return self.condemn(heap, now)

    def spared(self, heap: Heap, handle: int) -> None:  # noqa: B027  # most scan again anyway
        """Note that a condemned object could not be freed, so that it is condemned again."""

    def should_trigger(self, heap: Heap, now: float) -> bool:
        """Return whether there is certainly something to free; must be cheap."""
        return False


class TimeToLiveCollector(GarbageCollector):
    """Frees objects that have expired. It finds them in a priority queue, without a scan."""

    name = "ttl"

    def condemn(self, heap: Heap, now: float) -> GCVerdicts:
        due, table = heap.due, heap.table
        last = None
        while due and due[0][0] <= now:
            entry = end, handle = heapq.heappop(due)
            slot = table.slot_of(handle)
            if slot >= 0 and table.expires[slot] == end and entry != last:
                yield GCVerdict(handle, "expired")  # else freed, renewed, or a duplicate
            last = entry
            yield None

    def explain(self, heap: Heap, now: float, gone: Set[int] = frozenset()) -> GCVerdicts:
        table = heap.table
        for end, handle in sorted(heap.due):
            slot = table.slot_of(handle)
            if end <= now and slot >= 0 and table.expires[slot] == end:
                yield GCVerdict(handle, "expired")

    def spared(self, heap: Heap, handle: int) -> None:
        slot = heap.table.slot_of(handle)
        if slot >= 0:
            heapq.heappush(heap.due, (heap.table.expires[slot], handle))

    def should_trigger(self, heap: Heap, now: float) -> bool:
        return bool(heap.due) and heap.due[0][0] <= now


class MarkAndSweepCollector(GarbageCollector):
    """Frees objects that no root and no pinned object leads to.

    Incremental tri-colour marking: white objects are unseen, grey ones wait on a list, black ones
    are done. The invariant that makes it safe while the program runs: *no black object refers to a
    white one*. New objects start black. An object that becomes a root, pinned or a target turns
    grey (Dijkstra's barrier), also during the sweep, which then waits until the list is empty.
    """

    name = "mark_sweep"

    def condemn(self, heap: Heap, now: float) -> GCVerdicts:
        return self.explain(heap, now)

    def explain(self, heap: Heap, now: float, gone: Set[int] = frozenset()) -> GCVerdicts:
        marking = _Marking(heap, gone)
        try:
            yield from marking.roots()
            yield from marking.spread()
            yield from marking.sweep()
        finally:
            marking.close()


class _Marking:
    """The colours and the grey list of one cycle, kept up to date by the heap's listeners."""

    def __init__(self, heap: Heap, gone: Set[int]) -> None:
        self._heap = heap
        self._table = heap.table
        self._black = heap.table.flags.translate(_WHITEN)
        for handle in gone:
            self._on_freed(handle & SLOT_MASK)
        self._grey: list[int] = []
        heap.references.walk_begins()
        heap.on_stored.append(self._on_stored)
        heap.on_freed.append(self._on_freed)
        heap.on_kept.append(self._mark_grey)

    def close(self) -> None:
        self._heap.references.walk_ends()
        self._heap.on_stored.remove(self._on_stored)
        self._heap.on_freed.remove(self._on_freed)
        self._heap.on_kept.remove(self._mark_grey)

    def roots(self) -> Generator[None, None, None]:
        start = 0
        while start < self._table.rows:
            for slot in self._table.rooted(start, start + _ROOT_WINDOW):
                self._mark_grey(slot)
            start += _ROOT_WINDOW
            yield None

    def spread(self) -> Generator[None, None, None]:
        """Turn everything black that grey objects lead to."""
        grey, black = self._grey, self._black
        edges, handles = self._table.edges, self._table.handle
        target, following = self._heap.references.target, self._heap.references.next
        seen = 0
        while grey:
            row = edges[grey.pop()]
            while row != END:
                other = target[row]
                slot = other & SLOT_MASK
                if not black[slot] and handles[slot] == other:
                    black[slot] = 1
                    grey.append(slot)
                row = following[row]
                seen += 1
                if seen >= _CHECK_EVERY:
                    seen = 0
                    yield None
            seen += 1

    def sweep(self) -> GCVerdicts:
        black, table = self._black, self._table
        slot = black.find(0)
        while slot >= 0:
            black[slot] = 1  # examined; it is freed before the program runs again
            yield GCVerdict(table.handle[slot], "unreachable")
            if self._grey:
                yield from self.spread()
            slot = black.find(0, slot + 1)

    def _mark_grey(self, slot: int) -> None:
        self._cover(slot)
        if not self._black[slot]:
            self._black[slot] = 1
            self._grey.append(slot)

    def _on_stored(self, slot: int) -> None:
        self._cover(slot)
        self._black[slot] = 1

    def _on_freed(self, slot: int) -> None:
        self._cover(slot)
        self._black[slot] = 1  # nothing to free; a new object in the slot starts black

    def _cover(self, slot: int) -> None:
        if slot >= len(self._black):
            self._black.extend(b"\1" * (len(self._table.flags) - len(self._black)))


class GenerationalCollector(GarbageCollector):
    """Frees young objects that have not been used for a while, seldom before, and matter little.

    An object is promoted once for every ``promotion_threshold`` uses. After
    ``retention_generations`` promotions it is old and is never examined again. Young objects wait
    in a queue by age, so the cost of a collection depends on what is due, not on what exists.
    Roots, pinned objects and objects that others refer to are never freed.

    Args:
        promotion_threshold: How many uses a promotion takes.
        retention_generations: How many promotions make an object old.
        young_object_age: Seconds without a use before a young object may be freed.
        importance_below: Only objects with a lower ``importance_score`` are freed.

    Raises:
        InvalidInput: A value is out of range.
    """

    name = "generational"

    def __init__(
        self,
        promotion_threshold: int = 3,
        retention_generations: int = 2,
        young_object_age: float = 300.0,
        *,
        importance_below: float = 0.3,
    ) -> None:
        if promotion_threshold < 1 or not 1 <= retention_generations <= 255:
            raise InvalidInput(
                "promotion_threshold must be 1 or more, retention_generations from 1 to 255, got "
                f"{promotion_threshold} and {retention_generations}"
            )
        if not young_object_age >= 0:
            raise InvalidInput(f"young_object_age must be 0 or more, got {young_object_age}")
        self.promotion_threshold = promotion_threshold
        self.retention_generations = retention_generations
        self.young_object_age = young_object_age
        self.importance_below = importance_below
        self._young: deque[tuple[float, int]] = deque()  # (next examined from, handle)
        self._heap: Heap | None = None

    def attach(self, heap: Heap) -> None:
        self._heap = heap
        table = heap.table
        young = [slot for slot in table.living() if table.age[slot] < self.retention_generations]
        young.sort(key=table.created.__getitem__)
        self._young = deque(
            (table.created[slot] + self.young_object_age, table.handle[slot]) for slot in young
        )
        heap.on_stored.append(self._on_stored)

    def condemn(self, heap: Heap, now: float) -> GCVerdicts:
        young, table = self._young, heap.table
        lost: Counter[int] = Counter()  # references from condemned objects that are not freed yet
        last = 0
        for examined in range(len(young)):
            if young[0][0] > now:
                return
            _, handle = young.popleft()
            slot = table.slot_of(handle)
            if table.slot_of(last) < 0:
                lost.clear()
            if slot >= 0:
                if self._unwanted(heap, slot, now, lost[handle]):
                    lost.update(heap.references.targets(slot))
                    last = handle
                    yield GCVerdict(handle, "young and unwanted")
                else:
                    self._reconsider(heap, slot, now)
            if not examined % _CHECK_EVERY:
                yield None

    def explain(self, heap: Heap, now: float, gone: Set[int] = frozenset()) -> GCVerdicts:
        targets = heap.references.targets
        lost = Counter(target for each in gone for target in targets(each & SLOT_MASK))
        for again, handle in list(self._young):
            if again > now:
                return  # the others are due later
            slot = heap.table.slot_of(handle)
            if slot >= 0 and handle not in gone and self._unwanted(heap, slot, now, lost[handle]):
                lost.update(targets(slot))
                yield GCVerdict(handle, "young and unwanted")

    def spared(self, heap: Heap, handle: int) -> None:
        self._young.appendleft((0.0, handle))

    def _wanted(self, heap: Heap, slot: int) -> bool:
        """Return whether it was used often enough for its next promotion."""
        return heap.table.uses[slot] >= self.promotion_threshold * (heap.table.age[slot] + 1)

    def _unwanted(self, heap: Heap, slot: int, now: float, lost: int) -> bool:
        table = heap.table
        if table.flags[slot] & (ROOT | PINNED) or table.references[slot] > lost:
            return False
        if self._wanted(heap, slot):
            return False
        age = now - table.accessed[slot]
        score = importance_score(table.importance[slot], age, 0)
        return age > self.young_object_age and score < self.importance_below

    def _reconsider(self, heap: Heap, slot: int, now: float) -> None:
        table = heap.table
        if self._wanted(heap, slot):
            table.age[slot] += 1
        if table.age[slot] < self.retention_generations:
            self._young.append((now + self.young_object_age, table.handle[slot]))

    def _on_stored(self, slot: int) -> None:
        assert self._heap is not None  # it called us
        table = self._heap.table
        self._young.append((table.created[slot] + self.young_object_age, table.handle[slot]))


def default_collectors() -> Sequence[GarbageCollector]:
    """Return the collectors of a manager by default: expiry, then reachability."""
    return (TimeToLiveCollector(), MarkAndSweepCollector())
