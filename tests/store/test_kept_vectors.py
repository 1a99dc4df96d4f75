"""Vectors beside records, where a backend has its own ways to lose or keep them."""

from __future__ import annotations

from pathlib import Path

import pytest
from redis.asyncio import Redis
from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

from memoryspace import RedisStore, SpaceStore, SQLStore
from memoryspace.errors import OutOfSpace
from memoryspace.kernel import MemoryManager, Quotas
from memoryspace.record import Scope, Where
from memoryspace.store import KeepsVectors, Kept
from memoryspace.store.space.vectors import TAG
from memoryspace.store.sql.schema import vectors
from memoryspace.testing import capture, fresh_scope
from memoryspace.testing.store_tools import record, records
from memoryspace.testing.store_vectors_contract import everything, numbered, stored

from backends import SQL_STORE_BACKENDS, STORE_BACKENDS, server_url, sql_url, store_maker

SPACE = "model/3"


@pytest.mark.parametrize("backend", STORE_BACKENDS)
async def test_every_backend_keeps_vectors(backend: str) -> None:
    async with store_maker(backend) as make:
        assert isinstance(make(), KeepsVectors)


async def test_a_space_keeps_vectors_over_a_restart(tmp_path: Path) -> None:
    scope = fresh_scope()
    async with SpaceStore(tmp_path) as store:
        places = await stored(store, scope, records(3))
        await store.put_vectors(scope.user, SPACE, numbered(places))
        await store.put_vectors(scope.user, SPACE, {places[0]: b"newer"})
    async with SpaceStore(tmp_path) as store:
        assert await everything(store, scope.user) == {
            places[0].seq: b"newer",
            places[1].seq: b"vector of 1",
            places[2].seq: b"vector of 2",
        }
        assert len(await store.select(scope)) == 3
        await store.delete(scope, Where(ids=frozenset({places[1].id})))
        assert len(list(store.space.engine.heap.table.living())) == 4
    async with SpaceStore(tmp_path) as store:
        assert await store.vector_spaces(scope.user) == {SPACE: Kept(2, 16)}
        await store.delete(Scope(scope.user))
        assert len(list(store.space.engine.heap.table.living())) == 0


async def test_a_vector_whose_record_a_space_has_freed_is_freed_with_the_next_change() -> None:
    space, scope = MemoryManager(1 << 20, retriever=None), fresh_scope()
    store = SpaceStore(manager=space)
    places = await stored(store, scope, records(2))
    await store.put_vectors(scope.user, SPACE, numbered(places))
    stamps = space.engine.heap.table.stamp
    slot = next(each for each in space.engine.heap.table.living() if stamps[each] == places[0].seq)
    space.engine.free([space.engine.heap.table.handle[slot]], "by somebody else")
    assert await store.vector_spaces(scope.user) == {SPACE: Kept(1, 11)}
    again = SpaceStore(manager=space)
    assert await again.vector_spaces(scope.user) == {SPACE: Kept(1, 11)}
    await store.delete(scope)
    assert len(list(space.engine.heap.table.living())) == 0
    space.close()


async def test_vectors_count_in_quotas_and_give_way_to_records() -> None:
    one, two = fresh_scope(), fresh_scope()
    space = MemoryManager(1 << 20, retriever=None, quotas=Quotas(by_tenant={one.user: 12_000}))
    store = SpaceStore(manager=space)
    places = await stored(store, one, records(4))
    theirs = await stored(store, two, records(1))
    await store.put_vectors(two.user, SPACE, {theirs[0]: b"x" * 9000})
    await store.put_vectors(one.user, SPACE, dict.fromkeys(places[:2], b"x" * 4000))
    with pytest.raises(OutOfSpace):
        await store.put_vectors(one.user, SPACE, dict.fromkeys(places[2:], b"x" * 4000))
    assert await store.vector_spaces(one.user) == {SPACE: Kept(2, 8000)}
    assert await store.count(one) == 4
    await store.append(one, [record("y" * 4000)])
    assert await store.vector_spaces(one.user) == {}
    assert await store.vector_spaces(two.user) == {SPACE: Kept(1, 9000)}
    await store.put_vectors(one.user, SPACE, {places[0]: b"x" * 4000})
    gone = Where(ids=frozenset({places[0].id}))
    await store.replace(one, gone, [record("y" * 4000)])
    assert await store.count(one) == 5


async def test_where_a_space_is_full_the_vectors_of_all_give_way() -> None:
    one, two = fresh_scope(), fresh_scope()
    store = SpaceStore(manager=MemoryManager(1 << 16, retriever=None))
    theirs = await stored(store, two, records(1))
    await store.put_vectors(two.user, SPACE, {theirs[0]: b"x" * 50_000})
    await store.append(one, [record("y" * 20_000)])
    assert await store.vector_spaces(two.user) == {}
    assert await store.count(two) == 1


async def test_a_record_that_carries_the_mark_of_vectors_is_still_a_record(tmp_path: Path) -> None:
    scope = fresh_scope()
    async with SpaceStore(tmp_path) as store:
        places = await stored(store, scope, [record("said", TAG, id="1")])
        await store.put_vectors(scope.user, SPACE, numbered(places))
    async with SpaceStore(tmp_path) as store:
        with capture(store.events, "record_corrupt") as events:
            assert [each.text for each in await store.select(scope)] == ["said"]
            assert await everything(store, scope.user) == {places[0].seq: b"vector of 0"}
        assert events == []


async def test_vectors_in_redis_live_as_long_as_their_session() -> None:
    client = Redis.from_url(server_url("redis"))
    store, scope = RedisStore(client, ttl=1000, prefix="kept-vectors:"), fresh_scope()
    places = await stored(store, scope, records(2))
    await store.put_vectors(scope.user, SPACE, numbered(places))
    (key,) = [
        key async for key in client.scan_iter(f"kept-vectors:user:{{{scope.user}}}:*:vectors")
    ]
    assert 0 < await client.ttl(key) <= 1000
    store.ttl = 100_000
    await store.select(scope)
    assert await client.ttl(key) > 1000
    store.ttl = None
    await store.append(scope, [record()])
    assert await client.ttl(key) == -1
    await store.delete(scope)
    assert await client.exists(key) == 0
    await client.aclose()


async def test_damage_to_one_vector_in_redis_harms_no_other() -> None:
    client = Redis.from_url(server_url("redis"))
    store, scope = RedisStore(client), fresh_scope()
    places = await stored(store, scope, records(3))
    await store.put_vectors(scope.user, SPACE, numbered(places))
    (key,) = [key async for key in client.scan_iter(f"user:{{{scope.user}}}:*:vectors")]
    await client.hset(key, places[0].id, b"\xff no vectors at all")
    await client.hset(key, places[1].id, SPACE.encode() + b"\x0099999\0short")
    assert (await everything(store, scope.user))[places[2].seq] == b"vector of 2"
    assert places[0].seq not in await everything(store, scope.user)
    await store.put_vectors(scope.user, SPACE, numbered(places))
    assert len(await everything(store, scope.user)) == 3
    await client.aclose()


async def test_a_file_of_an_earlier_release_gets_the_table(tmp_path: Path) -> None:
    url, scope = sql_url("sqlite", tmp_path), fresh_scope()
    async with SQLStore(url) as store:
        places = await stored(store, scope, records(2))
    engine = create_async_engine(url)
    async with engine.begin() as connection:
        await connection.execute(text("DROP TABLE memoryspace_vector"))
        await connection.execute(text("DROP TRIGGER memoryspace_vector_goes"))
    await engine.dispose()
    async with SQLStore(url) as store:
        assert await store.put_vectors(scope.user, SPACE, numbered(places)) == 2
        await store.delete(scope, Where(ids=frozenset({places[0].id})))
        assert await everything(store, scope.user) == {places[1].seq: b"vector of 1"}


@pytest.mark.parametrize("backend", SQL_STORE_BACKENDS)
async def test_no_row_of_a_vector_outlives_its_record(backend: str, tmp_path: Path) -> None:
    engine, scope = create_async_engine(sql_url(backend, tmp_path)), fresh_scope()
    store = SQLStore(engine)
    places = await stored(store, scope, records(3))
    await store.put_vectors(scope.user, SPACE, numbered(places))
    await store.delete(scope, Where(ids=frozenset({places[0].id})))
    seqs = [place.seq for place in places]
    query = select(vectors.c.seq).where(vectors.c.seq.in_(seqs)).order_by(vectors.c.seq)
    async with engine.connect() as connection:
        assert list((await connection.execute(query)).scalars()) == seqs[1:]
    await store.delete(scope)
    async with engine.connect() as connection:
        assert list((await connection.execute(query)).scalars()) == []
    await engine.dispose()


async def test_vectors_are_part_of_a_hosts_transaction(tmp_path: Path) -> None:
    engine, scope = create_async_engine(sql_url("sqlite", tmp_path)), fresh_scope()
    store = SQLStore(engine)
    places = await stored(store, scope, records(2))
    async with AsyncSession(engine) as session:
        await session.begin()
        await SQLStore(session).put_vectors(scope.user, SPACE, numbered(places))
        await session.rollback()
    assert await store.vector_spaces(scope.user) == {}
    await engine.dispose()
