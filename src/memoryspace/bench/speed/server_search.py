"""Searches by many users: an index in each process against one inside PostgreSQL.

Users have memories in a few sessions each, all in one database. The same questions go through a
service that searches in its process, warmed up, and through one that lets the server search: first
one at a time, by users in random order, then ``clients`` at once. Counted are the statements that
reach the server, and the CPU time here and there. ``MEMORYSPACE_BENCH_POSTGRES`` names the server.
Texts are cut from the file that ``--data-path`` names, or invented.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import event, text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from ...embedding import Embedder, StaticEmbedder
from ...service import PersonalMemoryService, ServiceSettings, SQLMemoryService
from ...service.search.opening import SearchPlace
from ...service.stored import StoredMemoryService
from ...store import SQLStore
from ..harness.benchmark import Benchmark, Grid, Raw, Run
from ..harness.measuring import percentile
from ..harness.options import Flags, option
from ..memories.backends import place_of
from .recall_speed import words_of
from .service_postgres import siblings_ms

SEED = 20261118
SESSIONS = 4
PLACES: tuple[SearchPlace, ...] = ("process", "server")
NAMES = {"process": "in process", "server": "on the server"}


@dataclass(frozen=True)
class ServerSearchOptions(Flags):
    """How much is stored, and how often it is searched."""

    memories: int = option(20_000, "memories of all users", quick=400)
    users: int = option(200, "users", quick=8)
    searches: int = option(300, "searches one at a time", quick=10)
    clients: int = option(60, "searches at once", quick=4)
    waves: int = option(5, "times that so many search at once", quick=1)
    words: bool = option(False, "search by words alone, without static vectors")
    personal: bool = option(False, "search through a personal service")


class Bench:
    """One database with the memories of all users, and the searches to ask."""

    def __init__(self, options: ServerSearchOptions, words: Sequence[str], url: str) -> None:
        self.options, self.words = options, words
        self.engine = create_async_engine(url)
        self.rng = random.Random(SEED)
        self.statements = 0
        self.embedder: Embedder | None = None if options.words else StaticEmbedder()
        self.users = [f"user {number} of {time.time_ns()}" for number in range(options.users)]
        count_statements(self.engine, self)
        self.asked = [
            (self.rng.choice(self.users), self.span(6, 10))
            for _ in range(max(options.searches, options.clients * options.waves))
        ]

    def span(self, least: int, most: int) -> str:
        start = self.rng.randrange(len(self.words) - most)
        return " ".join(self.words[start : start + self.rng.randint(least, most)])

    def service(self, place: SearchPlace) -> StoredMemoryService:
        settings = ServiceSettings(embedder=self.embedder)
        if self.options.personal:
            return PersonalMemoryService(SQLStore(self.engine), settings=settings, search=place)
        return SQLMemoryService(self.engine, settings=settings, search=place)

    async def fill(self) -> None:
        each = self.options.memories // self.options.users
        async with self.service("process") as service:
            for user in self.users:
                for session in range(SESSIONS):
                    said = [self.span(8, 30) for _ in range(each // SESSIONS)]
                    await service.add_memory(user, said, f"session {session}")
                await service.settled(user)

    async def measure(self, service: StoredMemoryService) -> dict[str, float]:
        """Search once for each user, then one at a time, then many at once."""
        for user in self.users:
            await service.search(user, "anything")
        await self.wave(service, 0)  # opens the connections
        before, here, there = self.statements, time.process_time(), await self.server_ms()
        times = [await self.timed(service, *each) for each in self.asked[: self.options.searches]]
        here, there = time.process_time() - here, await self.server_ms() - there
        count = len(times)
        statements = (self.statements - before) / count
        waves = [await self.wave(service, number) for number in range(self.options.waves)]
        return {
            "p50": percentile(sorted(times), 50),
            "p99": percentile(sorted(times), 99),
            "cpu_here": 1e3 * here / count,
            "cpu_server": there / count,
            "statements": statements,
            "wave_s": percentile(sorted(waves), 50),
        }

    async def timed(self, service: StoredMemoryService, user: str, question: str) -> float:
        started = time.perf_counter()
        await service.search(user, question)
        return 1e3 * (time.perf_counter() - started)

    async def wave(self, service: StoredMemoryService, number: int) -> float:
        first = number * self.options.clients
        asked = self.asked[first : first + self.options.clients]
        started = time.perf_counter()
        await asyncio.gather(*(service.search(user, question) for user, question in asked))
        return time.perf_counter() - started

    async def server_ms(self) -> float:
        async with self.engine.connect() as on:
            mine = (await on.execute(text("SELECT pg_backend_pid()"))).scalar_one()
        return siblings_ms(str(mine))

    async def tidy(self) -> None:
        on_its_own = self.engine.execution_options(isolation_level="AUTOCOMMIT")
        async with on_its_own.connect() as on:
            await on.execute(text("VACUUM ANALYZE"))


def count_statements(engine: AsyncEngine, bench: Bench) -> None:
    """Count the statements of an engine."""

    def sent(*_: Any) -> None:
        bench.statements += 1

    event.listen(engine.sync_engine, "before_cursor_execute", sent)


def measure(options: ServerSearchOptions, run: Run) -> Raw:
    """Search in process, then on the server."""
    return asyncio.run(_measured(options, run, place_of("postgres", "")))


async def _measured(options: ServerSearchOptions, run: Run, url: str) -> Raw:
    bench = Bench(options, words_of(run.data_path), url)
    found: Raw = {"texts": "made up" if run.data_path is None else run.data_path.name}
    found |= {name: getattr(options, name) for name in options.__dataclass_fields__}
    try:
        await bench.fill()
        run.say("filled")
        for place in PLACES:
            async with bench.service(place) as service:
                for user in bench.users:
                    await service.search(user, "anything")
                await bench.tidy()
                found[place] = await bench.measure(service)
        async with bench.service("process") as service:
            for user in bench.users:
                await service.delete_memory(user)
    finally:
        await bench.engine.dispose()
    return found


def tables(raw: Mapping[str, Any]) -> list[Grid]:
    """Return both places side by side."""
    rows = tuple(_row(NAMES[place], raw[place], raw["clients"]) for place in PLACES)
    clients = raw["clients"]
    how = "words" if raw["words"] else "words and static vectors"
    kind = "a personal service" if raw["personal"] else "a plain service"
    note = (
        f"{raw['memories']:,} memories of {raw['users']} users, {how}, {kind}; texts: "
        f"{raw['texts']}. CPU: here + in the server, per search."
    )
    head = ("search", "p50 ms", "p99 ms", "CPU ms", "statements", f"{clients} at once", "a second")
    return [Grid("Searches by many users", 1, head, rows, note)]


def _row(name: str, one: Mapping[str, float], clients: int) -> tuple[str, ...]:
    return (
        name,
        f"{one['p50']:.1f}",
        f"{one['p99']:.1f}",
        f"{one['cpu_here']:.1f} + {one['cpu_server']:.1f}",
        f"{one['statements']:.1f}",
        f"{one['wave_s']:.2f} s",
        f"{clients / one['wave_s']:.0f}",
    )


BENCHMARK = Benchmark(
    "server-search",
    "searches by many users: an index in each process against one in PostgreSQL",
    ServerSearchOptions,
    measure,
    tables,
    packages=("memoryspace", "sqlalchemy", "asyncpg", "wordllama"),
)
