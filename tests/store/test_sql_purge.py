"""Expired rows leave the database in the background, by one process at a time."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import func, select, text
from sqlalchemy.ext.asyncio import create_async_engine

from memoryspace import Event, Record, Scope, SQLStore
from memoryspace.errors import InvalidInput
from memoryspace.message import new_id
from memoryspace.store.sql import Purger
from memoryspace.store.sql.purging import PURGE_LOCK
from memoryspace.store.sql.schema import records, sessions
from memoryspace.testing import ManualClock, fresh_scope
from memoryspace.testing.store_tools import Mirror

from backends import PARTITIONED, server_url, store_maker

every_backend = pytest.mark.parametrize("backend", ["sqlite", "postgres", PARTITIONED, "mariadb"])


def note(expires_at: float | None = None) -> Record:
    return Record(new_id(), {}, "Tea.", kind="note", expires_at=expires_at)


async def rows_of(store: SQLStore, user: str) -> tuple[int, int]:
    """Return how many rows of records and of sessions a user has, expired ones included."""
    assert store.engine is not None
    async with store.engine.connect() as on:
        counts = [
            (await on.execute(select(func.count()).where(table.c.user_id == user))).scalar_one()
            for table in (records, sessions)
        ]
    return counts[0], counts[1]


@every_backend
async def test_a_purge_deletes_what_has_expired_and_nothing_else(backend: str) -> None:
    async with store_maker(backend) as make:
        clock, user = ManualClock(), new_id()
        store, kept, gone = make(clock=clock), Scope(user, "kept"), Scope(user, "gone")
        assert isinstance(store, SQLStore)
        heard: list[Event] = []
        store.events.subscribe(heard.append, "purged")
        await store.append(kept, [note(), note(clock() + 10), note(clock() + 90)])
        await store.append(gone, [note(clock() + 10) for _ in range(7)])
        mirror = Mirror()
        await mirror.catch_up(store, user)
        await store.purge()
        assert (await rows_of(store, user))[0] == 10
        clock.advance(50)
        before = await store.select(Scope(user))
        assert await store.purge(at_once=3) >= 8
        assert (await rows_of(store, user))[0] == 2
        assert await store.select(Scope(user)) == before
        await mirror.catch_up(store, user)
        assert [id_ for _, _, id_ in mirror.held()] == [each.id for each in before]
        assert heard[-1].data["records"] >= 8
        assert await store.append(gone, [note()])
        await mirror.catch_up(store, user)
        assert len(mirror.held()) == 3


@every_backend
async def test_writers_and_purgers_do_not_disturb_each_other(backend: str) -> None:
    async with store_maker(backend) as make:
        clock = ManualClock()
        stores = [make(clock=clock) for _ in range(3)]
        scopes = [fresh_scope() for _ in range(3)]
        for scope in scopes:
            await stores[0].append(scope, [note(clock() + 1) for _ in range(20)])
        clock.advance(5)

        async def write(scope: Scope) -> None:
            for _ in range(10):
                await stores[0].append(scope, [note()])

        purges = [store.purge(at_once=5) for store in stores if isinstance(store, SQLStore)]
        await asyncio.gather(*map(write, scopes), *purges)
        await purges_all(stores[0])
        for scope in scopes:
            assert await stores[0].count(scope) == 10
            assert isinstance(stores[0], SQLStore)
            assert (await rows_of(stores[0], scope.user))[0] == 10


async def purges_all(store: object) -> None:
    assert isinstance(store, SQLStore)
    await store.purge()


async def test_one_process_purges_at_a_time() -> None:
    engine = create_async_engine(server_url("postgres"))
    clock, scope = ManualClock(), fresh_scope()
    store = SQLStore(engine, clock=clock)
    await store.append(scope, [note(clock() + 1)])
    clock.advance(5)
    async with engine.begin() as other:
        await other.execute(text(f"SELECT pg_advisory_xact_lock({PURGE_LOCK})"))
        assert await store.purge() == 0
    assert await store.purge() >= 1
    await engine.dispose()


async def test_a_purger_works_in_the_background_and_survives_an_outage() -> None:
    clock, scope = ManualClock(), fresh_scope()
    async with store_maker("sqlite") as make:
        store = make(clock=clock)
        assert isinstance(store, SQLStore)
        await store.append(scope, [note(clock() + 1)])
        clock.advance(5)
        is_purged = asyncio.Event()
        store.events.subscribe(lambda event: is_purged.set(), "purged")
        async with Purger(store, every=0.01):
            await asyncio.wait_for(is_purged.wait(), 60)
            is_purged.clear()
            await store.append(scope, [note(clock() + 1)])
            clock.advance(5)
            await asyncio.wait_for(is_purged.wait(), 60)
        assert (await rows_of(store, scope.user))[0] == 0


async def test_impossible_options_are_refused() -> None:
    async with SQLStore("sqlite://") as store:
        for at_once in (0, -1, 10**9):
            with pytest.raises(InvalidInput, match="at_once"):
                await store.purge(at_once=at_once)
        with pytest.raises(InvalidInput, match="every"):
            Purger(store, every=0)
