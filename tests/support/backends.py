"""Every backend under one roof: how to open a store or a memory of each kind for a test."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

import pytest
from sqlalchemy.ext.asyncio import create_async_engine

from memoryspace import (
    AsyncSQLAlchemyMemory,
    InMemoryMemory,
    MemoryBase,
    MemoryStore,
    RedisMemory,
    RedisStore,
    SpaceMemory,
    SpaceStore,
    SQLStore,
    Store,
)
from memoryspace.kernel import Durability, RamColdStorage, Runtime, TieredMemoryManager, Tiering
from memoryspace.store.redis.client import Client, client_at

import clusters
import servers
from length import at_length

SQL_STORE_BACKENDS = ["sqlite", "sqlite-memory", "postgres", "mariadb"]
SHARED_STORE_BACKENDS = ["sqlite", "postgres", "mariadb", "redis"]  # between processes
STORE_BACKENDS = ["memory", "space", *SQL_STORE_BACKENDS, "redis"]
CLUSTER_BACKENDS = ["redis-cluster", "valkey-cluster"]
# Above the store, one kind of cluster is enough for the quick run.
SERVED_CLUSTERS = at_length(["redis-cluster"], CLUSTER_BACKENDS)
REDIS_BACKENDS = ["redis", *CLUSTER_BACKENDS]

PARTITIONED = "postgres-partitioned"
PARTITIONS = 4

TINY_HEAP = 1 << 14  # bytes; what does not fit is demoted

QUICK = Durability(sync="os")  # outlives the process, which is what these tests look at

StoreMaker = Callable[..., Store]
MemoryMaker = Callable[[str, str], MemoryBase]


def server_url(name: str) -> str:
    try:
        return servers.shared_url(name)
    except servers.NoServerError as error:
        no_server(error)


def cluster_url(backend: str) -> str:
    """Return the address of the test run's cluster of a kind."""
    try:
        return clusters.shared(backend.removesuffix("-cluster")).url
    except servers.NoServerError as error:
        no_server(error)


def redis_client(backend: str) -> Client:
    """Return a new client of the test run's Redis server or of one of its clusters."""
    return client_at(server_url("redis") if backend == "redis" else cluster_url(backend))


def no_server(error: servers.NoServerError) -> NoReturn:
    if os.environ.get("MEMORYSPACE_TEST_STRICT"):
        pytest.fail(f"NO SERVER: {error}")
    pytest.skip(f"NO SERVER: {error}")


def sql_url(backend: str, folder: str | Path) -> str:
    if backend == "sqlite":
        return f"sqlite+aiosqlite:///{folder}/memory.db"
    if backend == "sqlite-memory":
        return "sqlite+aiosqlite://"
    if backend == "postgres-partitioned":
        server_url("postgres")
        return servers.second_database()
    return server_url(backend)


@asynccontextmanager
async def store_maker(backend: str) -> AsyncIterator[StoreMaker]:
    """Yield a function that makes stores over the same data: ``make(clock=…, events=…)``."""
    if backend == "memory":
        made: list[MemoryStore] = []

        def make_memory_store(**options: Any) -> MemoryStore:
            if not made or options:
                made.append(MemoryStore(**options))
            return made[-1]

        yield make_memory_store
    elif backend == "space":
        async with space_stores() as make_space_store:
            yield make_space_store
    elif backend in REDIS_BACKENDS:
        client = redis_client(backend)
        yield lambda **options: RedisStore(client, **options)
        await client.aclose()
    else:
        with TemporaryDirectory() as folder:
            engine = create_async_engine(sql_url(backend, folder))
            parts = {"partitions": PARTITIONS} if backend == PARTITIONED else {}
            yield lambda **options: SQLStore(engine, **parts, **options)
            await engine.dispose()


@asynccontextmanager
async def space_stores() -> AsyncIterator[StoreMaker]:
    """Yield a maker of stores on one folder, with so small a heap that most values are cold."""
    with TemporaryDirectory() as folder:
        made: list[SpaceStore] = []

        def make(**options: Any) -> SpaceStore:
            if made and not options:
                return made[-1]
            if not made:
                made.append(SpaceStore(folder, hot_capacity=TINY_HEAP, durability=QUICK, **options))
            else:  # the folder has its owner: another clock gets a space of its own
                space = TieredMemoryManager(
                    TINY_HEAP,
                    cold_store=RamColdStorage(),
                    retriever=None,
                    tiering=Tiering(flush_interval=None),
                    runtime=Runtime(clock=options.get("clock", time.time)),
                )
                made.append(SpaceStore(manager=space, **options))
            return made[-1]

        yield make
        for store in made:
            await store.close()


@asynccontextmanager
async def memory_maker(backend: str) -> AsyncIterator[MemoryMaker]:
    """Yield a function that makes memories over the same data: ``make(user_id, session_id)``."""
    if backend == "memory":
        store = MemoryStore()
        yield lambda user, session: InMemoryMemory(store=store, user_id=user, session_id=session)
    elif backend == "space":
        with TemporaryDirectory() as folder:
            made: list[SpaceMemory] = []

            def make_space_memory(user: str, session: str) -> SpaceMemory:
                made.append(
                    SpaceMemory(folder, session, user, hot_capacity=TINY_HEAP, durability=QUICK)
                )
                return made[-1]

            yield make_space_memory
            for memory in made:
                await memory.close()
    elif backend in REDIS_BACKENDS:
        client = redis_client(backend)
        yield lambda user, session: RedisMemory(session, user, client=client)
        await client.aclose()
    else:
        with TemporaryDirectory() as folder:
            engine = create_async_engine(sql_url(backend, folder))
            yield lambda user, session: AsyncSQLAlchemyMemory(engine, session, user)
            await engine.dispose()
