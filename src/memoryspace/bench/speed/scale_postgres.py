"""PostgreSQL with whole tables and with tables in partitions, from 1 to 64 clients.

Two new databases on one server are filled with the same memories of many users. Then clients add
memories, one a call, and search with the index inside the database, each call for a user drawn at
random. Clients are tasks of one process, and each holds one connection at most. The two databases
take turns, so that other load hits both. ``MEMORYSPACE_BENCH_POSTGRES`` names the server.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import make_url, text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from ...message import new_id
from ...service import ServiceSettings, SQLMemoryService
from ...store import SQLStore
from ..harness.benchmark import Benchmark, Grid, Raw, Run
from ..harness.measuring import percentile
from ..harness.options import Flags, option
from ..memories.backends import place_of
from .recall_speed import words_of

SEED = 20261118
CLIENTS = (1, 8, 64)
FILLERS = 16
SHAPES = ("whole", "partitioned")

Call = Callable[[SQLMemoryService, str], Awaitable[object]]


@dataclass(frozen=True)
class ScaleOptions(Flags):
    """How many users there are, what they have, and how long each figure is measured."""

    users: int = option(1000, "users", quick=50)
    each: int = option(10, "memories of each user", quick=4)
    partitions: int = option(16, "partitions of the partitioned tables", quick=4)
    seconds: float = option(5.0, "seconds for each figure", quick=0.5)
    rounds: int = option(3, "rounds, of which the median counts", quick=1)


def measure(options: ScaleOptions, run: Run) -> Raw:
    """Measure both shapes of tables."""
    return asyncio.run(_measured(options, run, place_of("postgres", "")))


async def _measured(options: ScaleOptions, run: Run, url: str) -> Raw:
    words = words_of(run.data_path)
    async with _database(url) as whole, _database(url) as parts:
        services = {
            "whole": await _filled(whole, None, options, words),
            "partitioned": await _filled(parts, options.partitions, options, words),
        }
        engines = {"whole": whole, "partitioned": parts}
        found: Raw = {
            "users": options.users, "each": options.each, "partitions": options.partitions,
            "bytes": {name: await _bytes_each(engine) for name, engine in engines.items()},
            "rates": {},
        }  # fmt: skip
        for clients in CLIENTS:
            for verb, call in _calls(words).items():
                run.say(f"{verb}, {clients} clients")
                found["rates"][f"{verb} {clients}"] = await _rates(services, call, clients, options)
        for service in services.values():
            await service.stop()
    return found


def _calls(words: list[str]) -> dict[str, Call]:
    rng = random.Random(SEED)

    async def add(service: SQLMemoryService, user: str) -> object:
        return await service.add_memory(user, [_said(rng, words)], "live")

    async def search(service: SQLMemoryService, user: str) -> object:
        return await service.search(user, " ".join(rng.sample(words, 4)), top_k=5)

    return {"add": add, "search": search}


async def _rates(
    services: Mapping[str, SQLMemoryService], call: Call, clients: int, options: ScaleOptions
) -> dict[str, dict[str, float]]:
    """Return calls a second and p99 of each shape: the round with the median rate."""
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in services}
    for number in range(options.rounds):
        turn = list(services) if number % 2 == 0 else list(services)[::-1]
        for name in turn:
            users = random.Random(f"{SEED} {number} {clients}")
            rounds[name].append(await _rate(services[name], call, clients, options, users))
    return {
        name: sorted(each, key=lambda one: one["per_second"])[len(each) // 2]
        for name, each in rounds.items()
    }


async def _rate(
    service: SQLMemoryService, call: Call, clients: int, options: ScaleOptions, rng: random.Random
) -> dict[str, float]:
    times: list[float] = []
    started = time.perf_counter()

    async def client() -> None:
        while (begin := time.perf_counter()) < started + options.seconds:
            await call(service, _user(rng.randrange(options.users)))
            times.append(time.perf_counter() - begin)

    await asyncio.gather(*(client() for _ in range(clients)))
    took = time.perf_counter() - started
    return {"per_second": len(times) / took, "p99_ms": 1e3 * percentile(sorted(times), 99)}


async def _filled(
    engine: AsyncEngine, partitions: int | None, options: ScaleOptions, words: list[str]
) -> SQLMemoryService:
    """Return a started service on new tables, with the memories of every user indexed."""
    await SQLStore(engine, partitions=partitions).create_tables()
    service = SQLMemoryService(engine, search="server", settings=ServiceSettings(embedder=None))
    await service.start()
    rng, numbers = random.Random(SEED), iter(range(options.users))

    async def fill() -> None:
        for number in numbers:
            said = [_said(rng, words) for _ in range(options.each)]
            await service.add_memory(_user(number), said, "past")
            await service.search(_user(number), "anything", top_k=1)

    await asyncio.gather(*(fill() for _ in range(FILLERS)))
    return service


async def _bytes_each(engine: AsyncEngine) -> float:
    """Return the bytes of all tables and their indexes for each memory, without dead rows."""
    at_once = engine.execution_options(isolation_level="AUTOCOMMIT")
    async with at_once.connect() as on:
        await on.execute(text("VACUUM ANALYZE"))
        size = (await on.execute(_SIZE)).scalar_one()
        rows = (await on.execute(text("SELECT count(*) FROM memoryspace_record"))).scalar_one()
    return float(size) / float(rows)


@asynccontextmanager
async def _database(url: str) -> AsyncIterator[AsyncEngine]:
    """A new database on the server, dropped afterwards."""
    name = f"memoryspace_bench_{new_id().lower()}"
    server = create_async_engine(url, isolation_level="AUTOCOMMIT")
    async with server.connect() as on:
        await on.execute(text(f"CREATE DATABASE {name}"))
    engine = create_async_engine(
        make_url(url).set(database=name), pool_size=max(CLIENTS), max_overflow=0
    )
    try:
        yield engine
    finally:
        await engine.dispose()
        async with server.connect() as on:
            await on.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
        await server.dispose()


def _said(rng: random.Random, words: list[str]) -> str:
    start = rng.randrange(len(words) - 30)
    return " ".join(words[start : start + rng.randint(8, 30)])


def _user(number: int) -> str:
    return f"user {number}"


_SIZE = text("""
    SELECT sum(pg_total_relation_size(oid)) FROM pg_class
    WHERE relname LIKE 'memoryspace%' AND relkind = 'r'
""")


def tables(raw: Mapping[str, Any]) -> list[Grid]:
    """Return calls a second and p99, and the bytes of a memory."""
    rows = [
        (*call.split(), *(_shown(rates[shape]) for shape in SHAPES), _ratio(rates))
        for call, rates in raw["rates"].items()
    ]
    sizes = tuple(f"{raw['bytes'][shape]:,.0f}" for shape in SHAPES)
    ratio = f"{raw['bytes']['partitioned'] / raw['bytes']['whole']:.2f}"
    note = (
        f"{raw['users']:,} users with {raw['each']} memories each; {raw['partitions']} partitions. "
        "Calls a second (p99 in ms); the last column is partitioned to whole."
    )
    head = ("call", "clients", "whole", "partitioned", "ratio")
    return [
        Grid("PostgreSQL by user", 2, head, tuple(rows), note),
        Grid("Bytes of a memory, with its index", 1, ("", "whole", "partitioned", "ratio"),
             (("bytes", *sizes, ratio),)),
    ]  # fmt: skip


def _shown(one: Mapping[str, float]) -> str:
    return f"{one['per_second']:,.0f} ({one['p99_ms']:.0f})"


def _ratio(rates: Mapping[str, Mapping[str, float]]) -> str:
    return f"{rates['partitioned']['per_second'] / rates['whole']['per_second']:.2f}"


BENCHMARK = Benchmark(
    "scale-postgres",
    "PostgreSQL with whole and partitioned tables, 1 to 64 clients over many users",
    ScaleOptions,
    measure,
    tables,
    packages=("memoryspace", "sqlalchemy", "asyncpg"),
)
