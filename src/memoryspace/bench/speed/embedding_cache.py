"""The file cache of vectors compared with AgentScope 1.0.16's: ``make bench``.

Both caches have the same names and files, each in its own folder with 5,000 of them, filled once.
They work in turns; every figure is a time per call, the ratio is theirs over ours, and the median
of the rounds counts. It is wall time unless a case says otherwise: ours goes to a thread and back,
which a busy machine slows down. Our cache lists its folder once per as many stores as it holds
files, so not in every round; the last table covers 1,500 stores per round at four sizes.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import statistics
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

warnings.filterwarnings("ignore")  # of AgentScope's own dependencies

import agentscope.embedding as their_embedding  # noqa: E402  # after the warnings
import numpy as np  # noqa: E402

from ... import embedding as our_embedding  # noqa: E402
from ..harness.benchmark import Benchmark, Grid, Raw, Run, compared_grid  # noqa: E402
from ..harness.options import Flags, option  # noqa: E402
from ..harness.timing import (  # noqa: E402
    CPU,
    WALL,
    AsyncCall,
    Case,
    Clock,
    Timed,
    duration,
    per_call,
    side_by_side,
)

FILES = 5_000
DIMENSIONS = 1_024
VECTOR = [random.Random(7).uniform(-1, 1) for _ in range(DIMENSIONS)]
FILE_SIZE = 128 + 8 * DIMENSIONS


@dataclass
class Side:
    """One of the two packages: same names, other root. ``calls`` is the number per round."""

    name: str
    cache: Any
    calls: int
    options: dict[str, Any] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=lambda: count(FILES))

    def open(self, folder: Path, **limits: Any) -> Any:
        return self.cache(str(folder), **limits, **self.options)

    def identifiers(self) -> list[Any]:
        return [_identifier(next(self.numbers)) for _ in range(self.calls)]


OURS = Side("memoryspace", our_embedding.FileEmbeddingCache, 1_500)
THEIRS = Side("agentscope", their_embedding.FileEmbeddingCache, 15)


def _identifier(number: int) -> Any:
    """Return an identifier with sorted keys: to AgentScope, another order is another one."""
    return {"dimensions": DIMENSIONS, "input": [f"text number {number}"], "model": "m"}


def fill(folder: Path, files: int = FILES) -> Path:
    """Write files as both caches do, each older than the next."""
    folder.mkdir(parents=True)
    names = our_embedding.VectorFiles(folder)
    for number in range(files):
        path = names.path(_identifier(number))
        np.save(path, [VECTOR])
        os.utime(path, ns=(10**18 + number, 10**18 + number))
    return folder


def stores(cache: Any, side: Side) -> list[AsyncCall]:
    """Return calls that each store a new vector."""
    return [partial(cache.store, [VECTOR], each) for each in side.identifiers()]


def storing(folders: Path, clock: Clock = WALL, **limits: Any) -> Timed:
    """Store new vectors in a folder that stays at its limit, or has none."""
    caches: dict[str, Any] = {}

    async def run(side: Side) -> float:
        if side.name not in caches:
            folder = fill(folders / f"{side.name} {sorted(limits)} {clock is CPU}")
            caches[side.name] = side.open(folder, **limits)
        return await per_call(stores(caches[side.name], side), clock)

    return run


def shrinking(folders: Path, surplus: int) -> Timed:
    """Store one vector in a folder that exceeds its limit by some files."""
    rounds = count()

    async def run(side: Side) -> float:
        folder = fill(folders / f"{side.name} shrinking {next(rounds)}", FILES + surplus)
        cache = side.open(folder, max_cache_size=FILES * FILE_SIZE / 2**20)
        return await per_call([lambda: cache.store([VECTOR], "one more")])

    return run


def retrieving(folders: Path, is_there: bool, files: int = FILES) -> Timed:
    """Retrieve vectors from a folder without a limit."""
    caches: dict[str, Any] = {}

    async def run(side: Side) -> float:
        if side.name not in caches:
            folder = folders / f"{side.name} retrieving {is_there} of {files}"
            caches[side.name] = side.open(fill(folder, files))
        cache, first = caches[side.name], 0 if is_there else 10 * FILES
        wanted = [_identifier(first + number) for number in range(500)]
        return await per_call([partial(cache.retrieve, each) for each in wanted])

    return run


def cases(folders: Path) -> list[Case]:
    size = FILES * FILE_SIZE / 2**20
    return [
        Case("store, 5k files, limit in number", 50, storing(folders, max_file_number=FILES)),
        Case(
            "the same, CPU time of all threads",
            50,
            storing(folders, CPU, max_file_number=FILES),
        ),
        Case("store, 5k files, limit in size", 50, storing(folders, max_cache_size=size)),
        Case(
            "store, 5k files, both limits",
            50,
            storing(folders, max_file_number=FILES, max_cache_size=size),
        ),
        Case("store, 5k files and more, no limit", None, storing(folders)),
        Case("store that must drop 50 files", None, shrinking(folders, 50)),
        Case("retrieve what is there", None, retrieving(folders, True)),
        Case("retrieve what is there, 1k files", 1.5, retrieving(folders, True, 1_000)),
        Case("retrieve what is not there", None, retrieving(folders, False)),
    ]


SIZES = [100, 1_000, 5_000, 20_000]


async def growth(folders: Path, rounds: int) -> list[dict[str, Any]]:
    """Return our cost of a store at its limit, in folders of growing size; ideally flat."""
    rows = []
    for size in SIZES:
        cache = OURS.open(fill(folders / f"growth {size}", size), max_file_number=size)
        times = [await per_call(stores(cache, OURS)) for _ in range(rounds)]
        rows.append({"files": size, "seconds": times, "median": statistics.median(times)})
    return rows


@dataclass(frozen=True)
class CacheOptions(Flags):
    """The number of rounds, and which cases."""

    rounds: int = option(5, "rounds per case", quick=1)
    only: str = option("", "only cases whose name contains this")


def measure(options: CacheOptions, run: Run) -> Raw:
    """Run the cases in turns, and ours in folders of growing size."""
    logging.disable(logging.INFO)  # AgentScope logs each file it drops
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_measured(options, run, Path(folder)))


async def _measured(options: CacheOptions, run: Run, folder: Path) -> Raw:
    chosen = [case for case in cases(folder) if options.only in case.name]
    rows = []
    for number, case in enumerate(chosen, 1):
        run.say(f"[{number}/{len(chosen)}] {case.name}")
        rows.append(await side_by_side(case, THEIRS, OURS, options.rounds))
    grown = await growth(folder, options.rounds) if not options.only else []
    return {"cases": rows, "growth": grown}


def tables(raw: Mapping[str, Any]) -> list[Grid]:
    """Return the cases, and ours in folders of growing size."""
    grown = tuple((f"{row['files']:,}", duration(row["median"])) for row in raw["growth"])
    head = ("files", "memoryspace, store at the limit")
    return [
        compared_grid("Time per call", raw["cases"], THEIRS.name, OURS.name),
        Grid("A store, by how many files there are", 1, head, grown),
    ]


BENCHMARK = Benchmark(
    "embedding-cache",
    "the cache of vectors in files beside AgentScope 1.0.16's",
    CacheOptions,
    measure,
    tables,
    notes="Wall time unless a case says otherwise. Ratios are theirs over ours.",
    packages=("memoryspace", "agentscope", "numpy"),
)
