"""The cost of the async interface, of more threads, and of a profiler."""

from __future__ import annotations

import asyncio
import statistics
from typing import Any

from ....events import EventStream
from ....kernel import AsyncMemoryManager, MemoryManager, MemoryProfiler, Runtime
from .spaces import ROUNDS, cpu, folder, seconds_of, space_in, texts


def faces(n: int) -> dict[str, Any]:
    """Measure the cost of the async interface, of more threads, and of a profiler."""
    payload = {"text": "x" * 200}
    space = MemoryManager(1 << 30, retriever=None)
    facade = AsyncMemoryManager(space)
    one = space.store(payload).id

    async def loads() -> float:
        with cpu() as taken:
            for _ in range(n):
                await facade.load(one)
        return taken()

    differences = []
    for _ in range(ROUNDS):
        with cpu() as direct:
            for _ in range(n):
                space.load(one)
        differences.append((asyncio.run(loads()) - direct()) / n * 1e6)
    single, eight = _mixed(space, 1, n), _mixed(space, 8, n // 8)
    space.close()
    return {
        "async_load_extra_us": statistics.median(differences),
        "threads_8_vs_1": eight / single,
        "profiler_cost": statistics.median([_profiler_cost(n // 4) for _ in range(ROUNDS)]),
    }


def _mixed(space: MemoryManager, threads: int, each: int) -> float:
    def work() -> None:
        for _ in range(each):
            space.load(space.store({"text": "x" * 200}, root=True).id)

    return threads * each / seconds_of(work, threads)


def _profiler_cost(n: int) -> float:
    """Return the slowdown of searchable stores and loads with a profiler that writes JSONL."""
    payloads = [{"text": text} for text in texts(n, 430)]
    taken = []
    for profiled in (False, True):
        events = EventStream()
        with folder() as path, folder() as output:
            profiler = MemoryProfiler("bench", output) if profiled else None
            if profiler is not None:
                profiler.attach(events)
            with space_in(path, runtime=Runtime(events=events)) as space, cpu() as spent:
                for payload in payloads:
                    space.load(space.store(payload).id)
            if profiler is not None:
                profiler.close()
        taken.append(spent())
    return taken[1] / taken[0] - 1
