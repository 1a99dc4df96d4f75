"""What a restart costs: the first search of a process, with vectors that last and without.

A user's memories are written once to a store; then processes come and go on it, of which each asks
one question. Counted are the texts that each embeds, and the time from opening the store to the
answer. The embedder is the best one installed; with ``--wait MS`` instead one that takes so many
milliseconds for each text, like one behind a network.

    python bench/restart.py [--memories 300] [--backends space sqlite redis] [--rounds 3]
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from memoryspace.embedding import (  # noqa: E402
    CallableEmbedder,
    Embedder,
    best_embedder,
    embed_questions,
)
from memoryspace.service import (  # noqa: E402
    RedisMemoryService,
    ServiceSettings,
    SpaceMemoryService,
    SQLMemoryService,
)
from memoryspace.service.stored import StoredMemoryService  # noqa: E402

import servers  # noqa: E402

BACKENDS = ("space", "sqlite", "postgres", "redis")
QUESTION = "where did we say the keys of house 17 are?"


class Counted:
    """An embedder that counts the texts it is asked for."""

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
    """What one start took: texts embedded, and seconds until the first answer."""

    embedded: int
    seconds: float


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
        return RedisMemoryService(servers.shared_url("redis"), settings=settings)
    url = f"sqlite+aiosqlite:///{folder}/db" if backend == "sqlite" else servers.shared_url(backend)
    return SQLMemoryService(url, settings=settings)


async def start(backend: str, folder: Path, user: str, counted: Counted, *, keep: bool) -> Start:
    before, began = counted.count, time.perf_counter()
    settings = ServiceSettings(embedder=counted, keep_vectors=keep)
    async with opened(backend, folder, settings) as service:
        await service.search(user, QUESTION)
        seconds = time.perf_counter() - began
        return Start(counted.count - before, seconds)


async def measure(backend: str, embedder: Embedder, memories: int, rounds: int) -> dict[str, Start]:
    counted = Counted(embedder)
    counted.embed(["so that its weights are loaded"])
    user = f"user {time.time_ns()}"
    with TemporaryDirectory() as folder:
        place = Path(folder)
        settings = ServiceSettings(embedder=counted)
        async with opened(backend, place, settings) as service:
            await service.add_memory(user, [*map(sentence, range(memories))])
            await service.settled(user)
        starts: dict[str, list[Start]] = {"kept": [], "not kept": []}
        for _ in range(rounds):
            for how, found in starts.items():
                found.append(await start(backend, place, user, counted, keep=how == "kept"))
        if backend != "space":
            async with opened(backend, place, settings) as service:
                await service.delete_memory(user)
    return {
        how: Start(found[0].embedded, statistics.median(each.seconds for each in found))
        for how, found in starts.items()
    }


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--backends", nargs="+", choices=BACKENDS, default=list(BACKENDS))
    parser.add_argument("--wait", type=float, metavar="MS")
    asked = parser.parse_args()
    embedder = best_embedder() if asked.wait is None else slow(asked.wait)
    if embedder is None:
        parser.error("no embedder is installed; install 'memoryspace[semantic]', or give --wait")
    print(f"{asked.memories} memories, {embedder.name}; one question after a restart\n")
    print("| store | vectors | texts embedded | first answer |\n|---|---|---|---|")
    for backend in asked.backends:
        for how, found in (await measure(backend, embedder, asked.memories, asked.rounds)).items():
            print(f"| {backend} | {how} | {found.embedded} | {found.seconds * 1000:.0f} ms |")
    servers.stop_all()


if __name__ == "__main__":
    asyncio.run(main())
