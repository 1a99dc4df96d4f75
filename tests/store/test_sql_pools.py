"""Few connections for many workers: small pools, a limit of the server, and a pooler before it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from sqlalchemy import make_url, text
from sqlalchemy.ext.asyncio import create_async_engine

from memoryspace import Record, Scope, SQLStore, Where
from memoryspace.errors import InvalidInput
from memoryspace.message import new_id
from memoryspace.service import ServiceSettings, SQLMemoryService
from memoryspace.store.sql.opening import open_engine
from memoryspace.testing import STORE_CONTRACT, VECTORS_CONTRACT, StoreCheck, fresh_scope

import servers
from backends import no_server, server_url
from length import LONG, at_length


@pytest.fixture(scope="module")
def pooler() -> Iterator[servers.PgBouncer]:
    """A pooler in transaction mode: each transaction gets one of two connections."""
    try:
        started = servers.started(servers.PgBouncer(server_url("postgres")))
    except servers.NoServerError as error:
        no_server(error)
    yield started
    started.remove()


def note() -> Record:
    return Record(new_id(), {}, "Tea.", kind="note")


CHECKS = [
    each
    for each in (*STORE_CONTRACT, *VECTORS_CONTRACT)
    if LONG or not each.__name__.startswith(("check_every_page", "check_thousands", "check_awk"))
]


async def test_a_pooler_in_transaction_mode_keeps_the_store_contract(
    pooler: servers.PgBouncer,
) -> None:
    engine = open_engine(f"{pooler.url}?pgbouncer=true&pool_size=12&max_overflow=0")
    limit = asyncio.Semaphore(4)  # checks at a time, so that connections change hands

    async def run(check: StoreCheck) -> None:
        async with limit:
            await check(lambda **options: SQLStore(engine, **options))

    await asyncio.gather(*map(run, CHECKS[:: at_length(4, 1)]))
    await engine.dispose()


async def test_many_workers_share_a_pooler(pooler: servers.PgBouncer) -> None:
    address = f"{pooler.url}?pgbouncer=true&pool_size=4"
    stores = [SQLStore(address) for _ in range(10)]
    scopes = [fresh_scope() for _ in range(10)]

    async def work(store: SQLStore, scope: Scope) -> list[str]:
        new = [note() for _ in range(8)]
        await asyncio.gather(*(store.append(scope, [each]) for each in new))
        first = Where(ids=frozenset({new[0].id}))
        assert await store.replace(scope, first, [new[0]], if_found=True) == [new[0].id]
        return sorted(each.id for each in new)

    expected = await asyncio.gather(*map(work, stores, scopes))
    for scope, ids in zip(scopes, expected, strict=True):
        assert sorted(each.id for each in await stores[0].select(scope)) == ids
    await asyncio.gather(*(store.close() for store in stores))


async def test_a_search_in_the_server_works_through_a_pooler(pooler: servers.PgBouncer) -> None:
    settings = ServiceSettings(embedder=None)
    address = f"{pooler.url}?pgbouncer=true"
    async with SQLMemoryService(address, search="server", settings=settings) as service:
        users = [new_id() for _ in range(6)]
        await asyncio.gather(*(service.add_memory(each, ["I live in Oslo"]) for each in users))
        found = await asyncio.gather(*(service.search(each, "Oslo") for each in users * 3))
        assert [len(each) for each in found] == [1] * 18


async def test_workers_whose_pools_fit_the_server_never_exceed_it() -> None:
    role, url = f"limited_{new_id().lower()}", make_url(server_url("postgres"))
    engine = create_async_engine(url)
    await SQLStore(engine).create_tables()
    async with engine.begin() as on:
        await on.execute(text(f"CREATE ROLE {role} LOGIN SUPERUSER"))
        await on.execute(text(f"ALTER ROLE {role} NOSUPERUSER CONNECTION LIMIT 6"))
        await on.execute(text(f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {role}"))
        await on.execute(text(f"GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO {role}"))
    await engine.dispose()
    address = url.set(username=role).render_as_string(hide_password=False)
    stores = [SQLStore(f"{address}?pool_size=2&max_overflow=0") for _ in range(3)]
    scope = fresh_scope()
    await asyncio.gather(*(store.append(scope, [note()]) for store in stores for _ in range(20)))
    assert await stores[0].count(scope) == 60
    await asyncio.gather(*(store.close() for store in stores))


@pytest.mark.parametrize(
    "query", ["pool_size=0", "pool_size=x", "max_overflow=-1", "pgbouncer=maybe", "partitions=1.5",
              "pool_size=1&pool_size=2"],
)  # fmt: skip
def test_an_unusable_option_of_an_address_is_refused(query: str) -> None:
    with pytest.raises(InvalidInput):
        SQLStore(f"postgresql://localhost/app?{query}")


def test_the_options_of_the_driver_are_left_to_it() -> None:
    engine = open_engine("postgresql://localhost/app?pool_size=3&sslmode=require")
    assert dict(engine.url.query) == {"ssl": "require"}
    assert engine.sync_engine.pool.size() == 3  # type: ignore[attr-defined]
