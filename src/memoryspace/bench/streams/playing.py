"""The loop that every memory goes through: store, check the budget, answer queries."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence

from ...errors import MemorySpaceError
from ..harness.experiment import Asked, Cell, CellResult
from ..memories.managed import Memory
from ..memories.systems import open_system
from .asking import Metric, judged
from .queries import Query, Stream

DEPTH = 10  # results per query
_BINS, _LEAST = 40, 20  # parts of a curve over time, and queries in each


class OverBudget(MemorySpaceError):
    """A memory holds more than its budget."""


class Playing:
    """A memory under test, with the results so far."""

    def __init__(self, memory: Memory, budget: int | None) -> None:
        self.memory = memory
        self.budget = budget
        self.asked: list[Asked] = []
        self.peak = 0
        self._numbers: dict[str, str] = {}  # text → its name
        self._storing: list[float] = []
        self._retrieving: list[float] = []

    def tell(self, text: str) -> None:
        """Store a text and check the budget."""
        self._numbers.setdefault(text, str(len(self._numbers)))
        started = time.perf_counter()
        self.memory.store(text)
        self._storing.append(time.perf_counter() - started)
        used = self.memory.bytes_used
        self.peak = max(self.peak, used)
        if self.budget is not None and used > self.budget:
            raise OverBudget(f"{used} bytes are used, but the budget is {self.budget}")

    def ask(self, query: Query, texts: Sequence[str], depth: int = DEPTH) -> list[str]:
        """Run a query, record which texts were found, and return them.

        Only a text that came back whole counts. One that was stored twice is one text.
        """
        started = time.perf_counter()
        found = self.memory.retrieve(query.text, depth)
        self._retrieving.append(time.perf_counter() - started)
        ranked = tuple(dict.fromkeys(self._numbers.get(text, "?") for text in found))
        right = tuple(dict.fromkeys(self._numbers[texts[number]] for number in query.right))
        self.asked.append(Asked(query.id, right, ranked, query.category))
        return found

    def timings(self) -> dict[str, float]:
        """Return the timings."""
        timings = {"store_us": statistics.fmean(self._storing) * 1e6}
        if self._retrieving:
            ordered = sorted(self._retrieving)
            timings["retrieve_us"] = statistics.median(ordered) * 1e6
            timings["retrieve_p99_us"] = ordered[int(len(ordered) * 0.99)] * 1e6
        return timings


def play(
    memory: Memory,
    stream: Stream,
    *,
    budget: int | None,
    metrics: Mapping[str, Metric],
    depth: int = DEPTH,
    tick: Callable[[int, int], None] = lambda done, of: None,
) -> CellResult:
    """Play a whole stream to a memory, score what it found, and close it."""
    playing = Playing(memory, budget)
    try:
        for number, text in enumerate(stream.texts):
            playing.tell(text)
            for query in stream.asked.get(number, ()):
                playing.ask(query, stream.texts, depth)
            if not number % 1000:
                tick(number, len(stream.texts))
        return result_of(playing, metrics)
    finally:
        memory.close()


def play_system(
    cell: Cell,
    stream: Stream,
    metrics: Mapping[str, Metric],
    tick: Callable[[int, int], None],
) -> CellResult:
    """Play a stream to the system of a cell, within its budget."""
    memory, budget = open_system(cell)
    return play(memory, stream, budget=budget, metrics=metrics, tick=tick)


def result_of(playing: Playing, metrics: Mapping[str, Metric]) -> CellResult:
    """Return figures, timings, the curve of the first metric over time, and raw ranks."""
    result = judged(playing.asked, metrics)
    figures = {
        **result.figures,
        "bytes_peak": playing.peak,
        **{name: float(value) for name, value in playing.memory.figures().items()},
    }
    name, metric = next(iter(metrics.items()))
    curve = _curve([metric(each.ranked, frozenset(each.right)) if each.right else 0.0
                    for each in playing.asked])  # fmt: skip
    steps = [(place + 1) / len(curve) for place in range(len(curve))]
    return CellResult(
        figures,
        {**playing.timings(), **playing.memory.footprint().timings()},
        {f"{name} over time": curve, "share of the run": steps},
        intervals=result.intervals,
        ranks=result.ranks,
    )


def _curve(values: Sequence[float]) -> list[float]:
    """Return the means of equal parts."""
    size = max(_LEAST, -(-len(values) // _BINS))
    parts = [values[at : at + size] for at in range(0, len(values), size)]
    return [statistics.fmean(part) for part in parts]
