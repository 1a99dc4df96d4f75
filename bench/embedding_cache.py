"""The cache of vectors in files beside AgentScope 1.0.16's, measured in one run.

    .venv-bench/bin/python bench/embedding_cache.py

Both caches have the same names and the same files, each in a folder of its own with 5,000 of them,
filled once. They work in turns; every figure is a time per call, the ratio is theirs over ours, and
the median of the rounds counts. It is wall time unless a case says otherwise: ours goes to a thread
and back, which a busy machine makes slow. Its folder is listed once in as many stores as it holds
files, so not in every round; the last table is of 1,500 stores in each of the rounds at four sizes.
The raw times go to results/.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import random
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))
warnings.filterwarnings("ignore")

import agentscope.embedding as their_embedding  # noqa: E402  # after the path and the warnings
import numpy as np  # noqa: E402

import memoryspace.embedding as our_embedding  # noqa: E402

from side_by_side import Case, Timed, environment, measure, save, shown, table  # noqa: E402

ROUNDS = 5
FILES = 5_000
DIMENSIONS = 1_024
PACKAGES = ("memoryspace", "agentscope", "numpy")
VECTOR = [random.Random(7).uniform(-1, 1) for _ in range(DIMENSIONS)]
FILE_SIZE = 128 + 8 * DIMENSIONS


@dataclass
class Side:
    """One of the two packages: same names, other root. ``calls`` are those of a round."""

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
    """Keys in the order of the alphabet: to AgentScope another order is another thing."""
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


def stores(cache: Any, side: Side) -> list[Callable[[], Awaitable[object]]]:
    return [lambda one=each: cache.store([VECTOR], one) for each in side.identifiers()]


async def per_call(
    calls: list[Callable[[], Awaitable[object]]], clock: Callable[[], float] = time.perf_counter
) -> float:
    start = clock()
    for call in calls:
        await call()
    return (clock() - start) / len(calls)


def storing(folders: Path, clock: Callable[[], float] = time.perf_counter, **limits: Any) -> Timed:
    """Store new vectors in a folder that stays at its limit, or has none."""
    caches: dict[str, Any] = {}

    async def run(side: Side) -> float:
        if side.name not in caches:
            folder = fill(folders / f"{side.name} {sorted(limits)} {clock.__name__}")
            caches[side.name] = side.open(folder, **limits)
        return await per_call(stores(caches[side.name], side), clock)

    return run


def shrinking(folders: Path, surplus: int) -> Timed:
    """Store one vector in a folder that is over its size by so many files."""
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
        return await per_call([lambda one=each: cache.retrieve(one) for each in wanted])

    return run


def cases(folders: Path) -> list[Case]:
    size = FILES * FILE_SIZE / 2**20
    return [
        Case("store, 5k files, limit in number", 50, storing(folders, max_file_number=FILES)),
        Case(
            "the same, CPU time of all threads",
            50,
            storing(folders, time.process_time, max_file_number=FILES),
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
    """Our cost of a store at its limit, in folders of growing size: flat if it does not grow."""
    rows = []
    for size in SIZES:
        cache = OURS.open(fill(folders / f"growth {size}", size), max_file_number=size)
        times = [await per_call(stores(cache, OURS)) for _ in range(rounds)]
        rows.append({"files": size, "seconds": times, "median": statistics.median(times)})
    return rows


def report(rows: list[dict[str, Any]], grown: list[dict[str, Any]]) -> str:
    lines = table(rows, THEIRS, OURS)
    lines += ["", "| files | memoryspace, store at the limit |", "|---|---|"]
    lines += [f"| {row['files']:,} | {shown(row['median'])} |" for row in grown]
    return "\n".join(lines)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--output", type=Path, default=ROOT / "results" / "embedding_cache.json")
    options = parser.parse_args()
    logging.disable(logging.INFO)  # AgentScope tells of each file it drops
    with tempfile.TemporaryDirectory() as folder:
        chosen = [case for case in cases(Path(folder)) if options.only in case.name]
        rows = []
        for number, case in enumerate(chosen, 1):
            print(f"[{number}/{len(chosen)}] {case.name}", file=sys.stderr, flush=True)
            rows.append(await measure(case, THEIRS, OURS, options.rounds))
        grown = await growth(Path(folder), options.rounds) if not options.only else []
    text = report(rows, grown)
    print(text)
    if not options.only:
        document = {"environment": environment(PACKAGES), "cases": rows, "growth": grown}
        save(options.output, document, text)


if __name__ == "__main__":
    asyncio.run(main())
