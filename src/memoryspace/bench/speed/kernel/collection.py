"""Collections: pauses, and the cost of the young generation."""

from __future__ import annotations

import gc
import random
import time
from typing import Any

from ....kernel import GenerationalCollector, MemoryManager, Runtime
from ....testing import ManualClock
from ...harness.measuring import percentile
from .spaces import SEED, cpu, texts


def collection(n: int) -> dict[str, Any]:
    """Collect many objects, 30 % garbage, in slices of 1 ms, while the program goes on."""
    rng = random.Random(SEED)
    shorts = texts(20_000, 90)
    space = MemoryManager(1 << 31, runtime=Runtime(pause=0.001))
    ids = [
        space.store({"text": shorts[number % len(shorts)]}, root=number % 100 == 0).id
        for number in range(n)
    ]
    kept = int(n * 0.7)
    roots = range(0, kept, 100)
    for number in range(n):
        for _ in range(2):
            target = rng.randrange(kept if number < kept else n)
            space.add_reference(ids[number], ids[target])
    for number in range(kept):
        if number % 100:
            space.add_reference(ids[rng.choice(roots)], ids[number])
    for number in range(kept, n):
        if number % 100 == 0:
            space.remove_root(ids[number])
    python_gc = _collect_seconds()
    pauses, stores = [], []
    before = len(space)
    done, total = False, 0.0
    while not done:
        started = time.thread_time()
        done = space.gc_step()
        pauses.append(time.thread_time() - started)
        for _ in range(3):
            started = time.thread_time()
            new = space.store({"text": "said while the collector works"}, root=True)
            space.add_reference(new.id, ids[rng.randrange(kept)])
            stores.append(time.thread_time() - started)
            before += 1
    total = sum(pauses)
    freed = before - len(space)
    space.close()
    del space, new
    return {
        "n": n,
        "freed": freed,
        "pause_p99_ms": percentile(sorted(pauses), 99) * 1e3,
        "pause_max_ms": max(pauses) * 1e3,
        "slices": len(pauses),
        "total_s": total,
        "freed_per_s": freed / total,
        "vs_seed": freed / total / 250,
        "store_and_link_p99_us": percentile(sorted(stores), 99) * 1e6,
        "python_gc_ms": python_gc * 1e3,
        "python_gc_without_ms": _collect_seconds() * 1e3,
    }


def _collect_seconds() -> float:
    """Return how long CPython's own collector takes when it has nothing new to do."""
    gc.collect()
    with cpu() as seconds:
        gc.collect()
    return seconds()


def generations(n: int) -> dict[str, Any]:
    """Measure young collections: the cost follows new objects; old ones are not visited."""
    found: dict[str, Any] = {}
    for old in (n // 10, n):
        clock = ManualClock()
        space = MemoryManager(
            1 << 30,
            retriever=None,
            collectors=[GenerationalCollector()],
            runtime=Runtime(clock=clock),
        )
        ids = [space.store({"k": number}, importance=1.0).id for number in range(old)]
        for _ in range(2):
            for each in ids:
                for _ in range(3):
                    space.load(each)
            clock.advance(301)
            space.run_gc()
        for number in range(1000):
            space.store({"young": number}, importance=0.0)
        clock.advance(4000)
        with cpu() as taken:
            freed = space.run_gc().freed
        found[str(old)] = {"freed": freed, "ms": taken() * 1e3}
        space.close()
    return found
