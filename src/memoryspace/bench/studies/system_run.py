"""A space that grows to many objects under use, then collects; runs in its own process.

Every 100th object is a root that links to the 99 after it. When the space is full, three roots in
ten are removed, and a collection runs in slices while objects are still stored.
"""

from __future__ import annotations

import gc
import random
import tempfile
import time
from array import array
from collections.abc import Sequence
from pathlib import Path

from ...kernel import Durability, MemoryManager, Runtime
from ...kernel.heap.object import handle_of, id_of
from ..harness.experiment import Cell, CellResult, integer
from ..harness.measuring import disk_bytes, histogram, resident_bytes, spread
from ..harness.samples import Words
from .children import Tick, answer

SESSION = 100  # objects from one root to the next
GARBAGE = 0.3  # share of the roots that is removed
PAUSE = 0.001  # seconds per slice of the collection
LOADS, QUERIES = 200, 10  # operations at each point
POINTS = 40  # points of a curve
_SENTENCES = 5000
_ROOM = 640  # heap bytes per object
_WHILE_COLLECTING = 3  # objects stored between two slices


class Notes:
    """Short notes, each with its number; the same for the same seed."""

    def __init__(self, seed: int) -> None:
        words = Words(seed)
        self._sentences = [words.sentence() for _ in range(_SENTENCES)]

    def text(self, number: int) -> str:
        """Return a note."""
        first, second = number % _SENTENCES, number * 7919 // 13 % _SENTENCES
        return f"note {number}: {self._sentences[first]} {self._sentences[second]}"

    def question(self, number: int) -> str:
        """Return a query that finds the note."""
        return " ".join(self.text(number).split()[:6])


class Growing:
    """A growing space: the time of each operation, and what was found."""

    def __init__(self, space: MemoryManager, notes: Notes, count: int, seed: int) -> None:
        self.space, self.notes, self.count = space, notes, count
        self.draw = random.Random(f"system {seed}")
        self.handles = array("q", bytes(8 * count))  # allocated up front, so not the space's
        self.storing = array("d", bytes(8 * count))
        self.retrieving: list[float] = []
        self.payload = self.asked = self.found = 0
        self.worked = 0.0  # CPU seconds of all stores
        self.before = resident_bytes()
        self.points: list[float] = []
        self.curves: dict[str, list[float]] = {
            name: [] for name in ("store_per_s", "load_per_s", "retrieve_per_s", "resident_mb")
        }

    def grow(self, tick: Tick) -> None:
        """Store everything; at each point of the curves, load and retrieve."""
        stops = [self.count * (point + 1) // POINTS for point in range(POINTS)]
        start = 0
        for stop in dict.fromkeys(stops):
            for number in range(start, stop):
                self._store(number)
            self._note_point(start, stop)
            start = stop
            tick(stop, self.count)

    def _store(self, number: int) -> None:
        text = self.notes.text(number)
        worked, started = time.thread_time(), time.perf_counter()
        stored = self.space.store({"text": text}, root=number % SESSION == 0)
        self.storing[number] = time.perf_counter() - started
        self.worked += time.thread_time() - worked
        self.handles[number] = handle_of(stored.id)
        self.payload += len(text)
        if number % SESSION:
            self.space.add_reference(id_of(self.handles[number // SESSION * SESSION]), stored.id)

    def _note_point(self, start: int, stop: int) -> None:
        self.points.append(stop)
        self.curves["store_per_s"].append((stop - start) / sum(self.storing[start:stop]))
        chosen = [id_of(self.handles[self.draw.randrange(stop)]) for _ in range(LOADS)]
        started = time.perf_counter()
        for object_id in chosen:
            self.space.load(object_id)
        self.curves["load_per_s"].append(LOADS / (time.perf_counter() - started))
        times = [self._ask(self.draw.randrange(stop)) for _ in range(QUERIES)]
        self.curves["retrieve_per_s"].append(QUERIES / sum(times))
        self.retrieving += times
        self.curves["resident_mb"].append((resident_bytes() - self.before) / 1e6)

    def _ask(self, number: int) -> float:
        question = self.notes.question(number)
        started = time.perf_counter()
        hits = self.space.retrieve(question)
        taken = time.perf_counter() - started
        self.asked += 1
        self.found += bool(hits) and hits[0].object.id == id_of(self.handles[number])
        return taken

    def drop_roots(self) -> int:
        """Remove some of the roots; return how many objects became unreachable."""
        garbage = 0
        for first in range(0, self.count, SESSION):
            if self.draw.random() < GARBAGE:
                self.space.remove_root(id_of(self.handles[first]))
                garbage += min(SESSION, self.count - first)
        return garbage


def collect(space: MemoryManager) -> tuple[int, list[float], list[float]]:
    """Collect in slices while the program goes on; return the number freed and slice times.

    The first list is CPU time, the second wall time.
    """
    before, stored = len(space), 0
    working: list[float] = []
    waiting: list[float] = []
    done = False
    while not done:
        worked, started = time.thread_time(), time.perf_counter()
        done = space.gc_step()
        waiting.append(time.perf_counter() - started)
        working.append(time.thread_time() - worked)
        for _ in range(_WHILE_COLLECTING):
            space.store({"text": "said while the collector works"}, root=True)
            stored += 1
    return before + stored - len(space), working, waiting


def run(cell: Cell, tick: Tick) -> CellResult:
    """Run a cell in this process."""
    count, seed = integer(cell, "objects"), integer(cell, "seed")
    how = Durability(sync=str(cell["sync"]))
    _warm_up()
    with tempfile.TemporaryDirectory(prefix="memoryspace-bench-") as folder:
        capacity = (1 << 20) + _ROOM * count
        space = MemoryManager(capacity, folder=folder, durability=how, runtime=Runtime(pause=PAUSE))
        try:
            growing = Growing(space, Notes(seed), count, seed)
            python_gc = -_python_gc()
            growing.grow(tick)
            garbage = growing.drop_roots()
            python_gc += _python_gc()
            freed, working, waiting = collect(space)
            started = time.perf_counter()
        finally:
            space.close()
        closed = time.perf_counter() - started
        started = time.perf_counter()
        MemoryManager(capacity, folder=folder, durability=how).close()
        opened = time.perf_counter() - started
        on_disk = disk_bytes(Path(folder))
    timings = {"close_s": closed, "reopen_s": opened, "disk_mb": on_disk / 1e6,
               "python_gc_ms": python_gc * 1e3}  # fmt: skip
    return _result(growing, garbage, freed, (working, waiting), timings)


def _result(
    growing: Growing,
    garbage: int,
    freed: int,
    slices: tuple[Sequence[float], Sequence[float]],
    timings: dict[str, float],
) -> CellResult:
    working, waiting = slices
    resident = growing.curves["resident_mb"][-1] * 1e6
    pauses = [seconds * 1e3 for seconds in working]
    bounds, counts = histogram(pauses)
    return CellResult(
        figures={
            "payload_mb": growing.payload / 1e6,
            "hit@1": growing.found / growing.asked,
            "garbage": garbage,
            "freed": freed,
        },
        timings={
            "store_per_s": growing.count / sum(growing.storing),
            "store_cpu_us": growing.worked / growing.count * 1e6,
            **spread("store", growing.storing),
            **spread("retrieve", growing.retrieving),
            **spread("pause", working, unit="ms"),
            "pause_waited_max_ms": max(waiting) * 1e3,
            "slices": len(working),
            "freed_per_s": freed / sum(working),
            "resident_mb": resident / 1e6,
            "resident_per_payload": resident / growing.payload,
            "bytes_beside_payload": (resident - growing.payload) / growing.count,
            **timings,
        },
        series={"objects stored": growing.points},
        timed_series={
            **growing.curves,
            "pauses_ms": pauses,
            "pause up to, ms": bounds,
            "slices": counts,
        },
    )


def _warm_up() -> None:
    """Load everything that is loaded on first use, because it belongs to no object."""
    with MemoryManager(1 << 20) as space:
        for number in range(2000):
            space.store({"text": f"note {number} about nothing in particular"}, root=True)
        space.retrieve("note 17")


def _python_gc() -> float:
    """Return how long Python's own collector takes over the live objects."""
    gc.collect()
    started = time.process_time()
    gc.collect()
    return time.process_time() - started


if __name__ == "__main__":
    answer(run)
