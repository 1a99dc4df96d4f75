"""Every backend of the memory service under one roof: how to open a service of each for a test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache
from tempfile import TemporaryDirectory
from typing import Any

from sqlalchemy.ext.asyncio import create_async_engine

from memoryspace import MemoryStore, SpaceStore
from memoryspace.service import RedisMemoryService, ServiceSettings, SQLMemoryService
from memoryspace.service.stored import StoredMemoryService
from memoryspace.service.tablestore import TablestoreMemoryService
from memoryspace.testing.tablestore import FakeTablestoreClient

from backends import QUICK, REDIS_BACKENDS, TINY_HEAP, redis_client, sql_url

BACKENDS = ["memory", "space", "sqlite", "postgres", "postgres-server", "mariadb", "redis"]
SHARED_BACKENDS = ["sqlite", "postgres", "postgres-server", "mariadb", "redis"]
WORDS = ServiceSettings(embedder=None)

ServiceMaker = Callable[..., StoredMemoryService]


@cache
def fake_tablestore() -> FakeTablestoreClient:
    return FakeTablestoreClient()  # one for all: making its tables takes the package a second


@asynccontextmanager
async def service_maker(backend: str) -> AsyncIterator[ServiceMaker]:
    """Yield a function that makes services over the same data; they search by words alone."""
    if backend in ("memory", "space"):
        with TemporaryDirectory() as folder:
            store = (
                MemoryStore()
                if backend == "memory"
                else SpaceStore(folder, hot_capacity=TINY_HEAP, durability=QUICK)
            )
            yield lambda **options: StoredMemoryService(store, **{"settings": WORDS, **options})
            await store.close()
    elif backend == "tablestore":
        yield lambda **options: TablestoreMemoryService(
            fake_tablestore(), **{"settings": WORDS, **options}
        )
    elif backend in REDIS_BACKENDS:
        client = redis_client(backend)
        yield lambda **options: RedisMemoryService(
            redis_client=client, **{"settings": WORDS, **options}
        )
        await client.aclose()
    else:
        async with sql_services(backend) as make:
            yield make


@asynccontextmanager
async def sql_services(backend: str) -> AsyncIterator[ServiceMaker]:
    kind, _, place = backend.partition("-")
    with TemporaryDirectory() as folder:
        engine = create_async_engine(sql_url(kind, folder))
        search: Any = place if place else "process"
        yield lambda **options: SQLMemoryService(
            engine, search=search, **{"settings": WORDS, **options}
        )
        await engine.dispose()
