"""Reads from a hot standby: as fresh as the user's own writes, and never a reason to fail."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from memoryspace import Event, Record, Scope, SQLStore
from memoryspace.errors import InvalidInput
from memoryspace.message import new_id
from memoryspace.service import ServiceSettings, SQLMemoryService
from memoryspace.store import stale_reads
from memoryspace.store.sql.engines import state_of
from memoryspace.store.sql.replica import Replica
from memoryspace.testing import fresh_scope

import servers
from backends import no_server

WORDS = ServiceSettings(embedder=None)


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[servers.Postgres, servers.Standby]]:
    """A primary, and a standby that streams from it."""
    try:
        primary = servers.started(servers.Postgres())
    except servers.NoServerError as error:
        no_server(error)
    try:
        standby = servers.started(servers.Standby(primary))
        yield primary, standby
        standby.remove()
    finally:
        primary.remove()


@asynccontextmanager
async def store_with(
    replica: servers.Standby, primary: servers.Postgres
) -> AsyncIterator[SQLStore]:
    store = SQLStore(primary.url, replica=replica.url)
    await store.create_tables()
    try:
        yield store
    finally:
        await ask(replica, "SELECT pg_wal_replay_resume()")
        await store.close()


def note(id_: str | None = None) -> Record:
    return Record(new_id() if id_ is None else id_, {}, "Tea.", kind="note")


def replica_of(store: SQLStore) -> Replica:
    assert store.engine is not None
    replica = state_of(store.engine).replica
    assert replica is not None
    return replica


async def ask(server: servers.Postgres, query: str) -> Any:
    on = await asyncpg.connect(server.url.replace("+asyncpg", ""))
    try:
        return await on.fetchval(query)
    finally:
        await on.close()


async def caught_up(primary: servers.Postgres, standby: servers.Postgres) -> None:
    """Wait until the standby shows all that the primary has written."""
    await ask(primary, "CHECKPOINT")
    written = await ask(primary, "SELECT pg_current_wal_insert_lsn()::text")
    async with asyncio.timeout(60):
        query = f"SELECT pg_last_wal_replay_lsn() >= '{written}'"
        while not await ask(standby, query):  # noqa: ASYNC110  # only the standby knows
            await asyncio.sleep(0.02)


def reasons(store: SQLStore) -> list[str]:
    heard: list[str] = []

    def hear(event: Event) -> None:
        heard.append(event.data["reason"])

    store.events.subscribe(hear, "replica_skipped")
    return heard


async def test_a_read_that_may_be_stale_comes_from_the_replica(pair: Any) -> None:
    primary, standby = pair
    scope = fresh_scope()
    async with store_with(standby, primary) as store:
        await store.append(scope, [note("a")])
        assert await store.count(scope) == 1
        assert replica_of(store).served == 0
        await caught_up(primary, standby)
        with stale_reads():
            assert await store.count(scope) == 1
            assert [each.id for each in await store.select(scope)] == ["a"]
        assert replica_of(store).served == 2
        assert await store.count(scope) == 1
        assert replica_of(store).served == 2


async def test_a_user_reads_its_own_writes_while_the_replica_is_behind(pair: Any) -> None:
    primary, standby = pair
    mine, other = fresh_scope(), fresh_scope()
    async with store_with(standby, primary) as store, SQLStore(primary.url) as elsewhere:
        heard = reasons(store)
        await store.append(mine, [note()])
        await caught_up(primary, standby)
        await ask(standby, "SELECT pg_wal_replay_pause()")
        await store.append(mine, [note()])
        await elsewhere.append(other, [note()])
        with stale_reads():
            assert await store.count(mine) == 2  # from the primary
            assert await store.count(other) == 0  # stale, which is allowed: another process wrote
        assert heard == ["behind"]
        await store.delete(mine)
        with stale_reads():
            assert await store.select(mine) == []
        assert heard == ["behind", "behind"]
        await ask(standby, "SELECT pg_wal_replay_resume()")
        await caught_up(primary, standby)
        with stale_reads():
            assert await store.count(other) == 1
            assert await store.select(mine) == []
        assert replica_of(store).served == 3
        assert heard == ["behind", "behind"]


async def test_tasks_started_inside_read_from_the_primary(pair: Any) -> None:
    primary, standby = pair
    async with store_with(standby, primary) as store:
        with stale_reads():
            await asyncio.gather(store.count(fresh_scope()), store.count(fresh_scope()))
        assert replica_of(store).served == 0


async def test_concurrent_writes_and_reads_of_a_user_are_never_missing(pair: Any) -> None:
    primary, standby = pair

    async def go_on(store: SQLStore, scope: Scope) -> None:
        for number in range(1, 31):
            await store.append(scope, [note()])
            with stale_reads():
                assert await store.count(scope) == number

    async with store_with(standby, primary) as store:
        await asyncio.gather(*(go_on(store, fresh_scope()) for _ in range(8)))


async def test_a_server_search_reads_from_the_replica_and_finds_what_was_just_added(
    pair: Any,
) -> None:
    primary, standby = pair
    user = new_id()
    async with store_with(standby, primary) as store:
        assert store.engine is not None
        async with SQLMemoryService(store.engine, search="server", settings=WORDS) as service:
            service.searcher._whole = 0  # type: ignore[attr-defined]  # as if there were many
            for number, city in enumerate(["Oslo", "Rome", "Lima"]):
                await service.add_memory(user, [f"I was in {city}"])
                hits = await service.search(user, city)
                assert city in hits[0].memory.text, number
            await caught_up(primary, standby)
            served = replica_of(store).served
            assert len(await service.search(user, "I was in Lima", top_k=3)) == 3
            assert replica_of(store).served > served


async def test_a_replica_that_dies_and_returns_is_not_noticed(pair: Any) -> None:
    primary, standby = pair
    scope = fresh_scope()
    now = 0.0
    async with store_with(standby, primary) as store:
        replica_of(store)._clock = lambda: now
        heard = reasons(store)
        await store.append(scope, [note()])
        await caught_up(primary, standby)
        standby.kill()
        try:
            with stale_reads():
                assert await store.count(scope) == 1
                assert await store.count(scope) == 1
            assert heard == ["down", "down"]
        finally:
            standby.start()
        await store.append(scope, [note()])
        await caught_up(primary, standby)
        now = 60.0
        with stale_reads():
            assert await store.count(scope) == 2
        assert replica_of(store).served == 1


async def test_only_an_engine_of_postgres_can_have_a_replica(pair: Any) -> None:
    primary, _ = pair
    with pytest.raises(InvalidInput, match="only PostgreSQL"):
        SQLStore("sqlite://", replica="sqlite://")
    with pytest.raises(InvalidInput, match="only PostgreSQL"):
        SQLStore(primary.url, replica="sqlite://")
