"""Shared parts of the kernel's benchmark: texts, a CPU clock, spaces in folders."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from ....kernel import Durability, MemoryManager

ROUNDS = 3
SEED = 20261116


def words(rng: random.Random, count: int) -> list[str]:
    """Return words of an invented language, with natural frequencies."""
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    vocabulary = sorted(
        {
            "".join(rng.choices(letters, range(26, 0, -1), k=rng.randint(2, 10)))
            for _ in range(40_000)
        }
    )
    rng.shuffle(vocabulary)
    return rng.choices(vocabulary, [1 / (rank + 3) for rank in range(len(vocabulary))], k=count)


def texts(count: int, median: float, seed: int = SEED) -> list[str]:
    """Return texts with log-normal lengths around a median."""
    rng = random.Random(seed)
    pool = words(rng, 1_000_000)
    found = []
    for _ in range(count):
        size = min(20_000, max(50, int(rng.lognormvariate(0, 1) * median)))
        start = rng.randrange(len(pool) - 4000)
        found.append(" ".join(pool[start : start + max(4, size // 6)])[:size])
    return found


@contextmanager
def cpu() -> Iterator[Callable[[], float]]:
    """Yield a function that returns the CPU seconds spent in the block."""
    started = time.process_time()
    ended: list[float] = []
    yield lambda: (ended[0] if ended else time.process_time()) - started
    ended.append(time.process_time())


def folder() -> tempfile.TemporaryDirectory[str]:
    """Return a temporary folder."""
    return tempfile.TemporaryDirectory(prefix="memoryspace-bench-")


def space_in(path: str, **options: Any) -> MemoryManager:
    """Open a space in a folder; it syncs in groups and writes no checkpoint by itself."""
    options.setdefault("durability", Durability(sync="group:50", checkpoint_bytes=1 << 40))
    return MemoryManager(1 << 31, folder=path, **options)


def seconds_of(work: Callable[[], None], threads: int) -> float:
    """Run the same work in several threads; a failing thread voids the measurement."""
    started = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(work) for _ in range(threads)]:
            done.result()
    return time.perf_counter() - started
