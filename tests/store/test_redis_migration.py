"""Keys as earlier versions named them: nobody sees an empty memory, and all are moved once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from redis.asyncio import Redis
from redis.asyncio.cluster import RedisCluster

from memoryspace import Record, RedisStore, Scope, Where
from memoryspace.errors import InvalidInput
from memoryspace.memory import InMemoryMemory
from memoryspace.message import Msg, new_id
from memoryspace.session import RedisSession
from memoryspace.store.redis import Migration, migrate
from memoryspace.store.redis.layout import PARTS, base_of, escaped
from memoryspace.store.redis.migrating import earlier_state_key, state_key
from memoryspace.store.vectors import place_of
from memoryspace.testing import ManualClock

from backends import cluster_url, redis_client, server_url

USERS = ["ann", "a:b%", "{bob}", "用户}"]
SESSIONS = ["s", "{t}:%"]
OLD = str.maketrans({"%": "%25", ":": "%3A"})


@asynccontextmanager
async def client_and_prefix() -> AsyncIterator[tuple[Redis, str]]:
    async with Redis.from_url(server_url("redis")) as client:
        yield client, f"{new_id()}[*]"  # no pattern, but a name


def note(id_: str, *marks: str, expires_at: float | None = None) -> Record:
    return Record(id_, id_, marks=frozenset(marks), kind="note", expires_at=expires_at)


async def make_earlier(client: Redis, prefix: str, users: list[str]) -> None:
    """Name the keys of users as earlier versions did."""
    for user in users:
        new, old = base_of(prefix, escaped(user)), f"{prefix}user_id:{user.translate(OLD)}:"
        for session in SESSIONS:
            for part in PARTS:
                place = f"{new}session:{escaped(session)}:{part}"
                if await client.exists(place):
                    await client.rename(place, f"{old}session:{session.translate(OLD)}:{part}")
        await client.delete(f"{new}sessions")
        await client.sadd(f"{old}sessions", *(each.translate(OLD) for each in SESSIONS))
        await client.zadd(f"{prefix}memoryspace:users", {user.translate(OLD): 0})
    await client.delete(*[key async for key in client.scan_iter(f"{escape(prefix)}users:*")])
    await client.set(f"{prefix}memoryspace:seq", 1000)


def escape(prefix: str) -> str:
    return prefix.replace("[", r"\[").replace("*", r"\*").replace("]", r"\]")


async def fill(store: RedisStore, users: list[str]) -> None:
    for user in users:
        for session in SESSIONS:
            scope = Scope(user, session)
            await store.append(scope, [note("a", "m"), note("b", expires_at=4e9), note("c")])
            await store.delete(scope, Where(ids=frozenset({"c"})))
            places = [place_of(each) for each in await store.select(scope)]
            await store.put_vectors(user, "e", dict.fromkeys(places, b"vector"))


async def earlier_store(client: Redis, prefix: str, ttl: int | None = None) -> RedisStore:
    store = RedisStore(client, prefix=prefix, ttl=ttl)
    await fill(store, USERS)
    await make_earlier(client, prefix, USERS)
    return RedisStore(Redis.from_url(server_url("redis")), prefix=prefix, ttl=ttl)


async def check_whole(store: RedisStore) -> None:
    assert sorted((await store.users()).users) == sorted(USERS)
    for user in USERS:
        assert sorted(await store.sessions(user)) == sorted(SESSIONS)
        assert (await store.vector_spaces(user))["e"].count == 4
        for session in SESSIONS:
            found = await store.select(Scope(user, session))
            assert [(each.id, each.marks) for each in found] == [("a", {"m"}), ("b", set())]


async def old_keys(client: Redis, prefix: str) -> list[bytes]:
    places = (f"{escape(prefix)}user_id:*", f"{escape(prefix)}memoryspace:*")
    return [key for place in places async for key in client.scan_iter(place)]


@pytest.mark.parametrize("first", ["select", "append", "count", "sessions", "changes", "users"])
async def test_earlier_data_is_there_with_the_first_call(first: str) -> None:
    async with client_and_prefix() as (client, prefix):
        store = await earlier_store(client, prefix)
        ann, scope = Scope("ann"), Scope("{bob}", "s")
        if first == "append":
            assert await store.append(scope, [note("a", "more"), note("d")]) == ["d"]
            found = await store.select(scope)
            assert [each.id for each in found] == ["a", "b", "d"]
            assert found[0].marks == {"m", "more"}
            assert await store.delete(scope, Where(ids=frozenset({"d"}))) == ["d"]
            await store.mark(scope, Where(), remove=["more"])
        elif first == "changes":
            assert len((await store.changes("ann")).records) == 4
        elif first == "sessions":
            assert await store.sessions("ann") == sorted(SESSIONS)
        elif first == "users":
            assert sorted((await store.users()).users) == sorted(USERS)
        else:
            assert {"select": len(await store.select(ann)), "count": await store.count(ann)} == {
                "select": 4,
                "count": 4,
            }
        await check_whole(store)
        await store.client.aclose()


async def test_everything_is_moved_and_told() -> None:
    async with client_and_prefix() as (client, prefix):
        store = await earlier_store(client, prefix)
        told: list[Migration] = []
        done = await migrate(client, prefix=prefix, on_progress=told.append)
        assert done == told[-1] == Migration(users=4, sessions=8, records=16)
        assert await old_keys(client, prefix) == []
        await check_whole(store)
        assert await migrate(client, prefix=prefix) == Migration()
        await check_whole(store)
        await store.client.aclose()


async def test_a_migration_that_stopped_goes_on() -> None:
    async with client_and_prefix() as (client, prefix):
        store = await earlier_store(client, prefix)

        def stop(done: Migration) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            await migrate(client, prefix=prefix, on_progress=stop)
        assert await store.count(Scope("ann")) == 4
        await migrate(client, prefix=prefix)
        assert await old_keys(client, prefix) == []
        await check_whole(store)
        await store.client.aclose()


async def test_writers_and_readers_go_on_meanwhile() -> None:
    async with client_and_prefix() as (client, prefix):
        store = await earlier_store(client, prefix)
        another = RedisStore(Redis.from_url(server_url("redis")), prefix=prefix)
        stores = [store, another]  # the client that wrote the keys knows of no earlier ones

        async def use(number: int, user: str) -> None:
            scope = Scope(user, f"new {number}")
            for each in range(5):
                assert await stores[number % 2].append(scope, [note(str(each))]) == [str(each)]
                assert await stores[number % 2].count(Scope(user, "s")) == 2

        uses = [use(number, user) for number in range(3) for user in USERS]
        await asyncio.gather(migrate(client, prefix=prefix), migrate(client, prefix=prefix), *uses)
        assert await old_keys(client, prefix) == []
        for user in USERS:
            assert await store.count(Scope(user)) == 4 + 3 * 5
            assert len(await store.sessions(user)) == 2 + 3
        for each in stores:
            await each.client.aclose()


async def test_what_an_earlier_version_writes_afterwards_is_added() -> None:
    """It wrote a session that has moved. What is new there comes in, in its place."""
    async with client_and_prefix() as (client, prefix):
        clock = ManualClock()
        store = RedisStore(client, prefix=prefix, clock=clock)
        scope = Scope("ann", "s")
        passing = note("d", expires_at=clock.now + 5)
        await store.append(scope, [note("a", "old"), note("b"), note("c", "x"), passing])
        await make_earlier(client, prefix, ["ann"])
        fresh = RedisStore(Redis.from_url(server_url("redis")), prefix=prefix, clock=clock)
        await RedisStore(client, prefix=prefix, clock=clock).append(scope, [note("a", "new")])
        assert await fresh.count(scope) == 4
        found = await fresh.select(scope)
        assert [each.id for each in found] == ["b", "c", "d", "a"]  # a is the newer one
        assert found[-1].marks == {"old", "new"}
        assert await fresh.count(scope, Where(marks=frozenset({"x"}))) == 1
        clock.advance(6)
        assert await fresh.count(scope) == 3
        await fresh.client.aclose()


async def test_a_session_keeps_its_time_to_live() -> None:
    async with client_and_prefix() as (client, prefix):
        store = await earlier_store(client, prefix, ttl=500)
        await migrate(client, prefix=prefix)
        keys = [key async for key in client.scan_iter(f"{escape(prefix)}user:*")]
        assert len(keys) == 4 * (2 * 7 + 1)
        assert all([0 < await client.ttl(key) <= 502 for key in keys])
        await store.client.aclose()


async def test_a_saved_state_is_found_before_and_after() -> None:
    async with client_and_prefix() as (client, prefix):
        session, memory = RedisSession(client=client, key_prefix=prefix), InMemoryMemory()
        await memory.add(Msg("Ann", "kept", "user"))
        for user in USERS:
            await session.save_session_state("{s}", user, memory=memory)
            names = (prefix, user, "{s}")
            await client.rename(state_key(*names), earlier_state_key(*names))
        for moved in (0, len(USERS)):
            for user in USERS:
                restored = InMemoryMemory()
                await session.load_session_state("{s}", user, False, memory=restored)
                assert await restored.size() == 1
            assert (await migrate(client, prefix=prefix)).states == len(USERS) - moved
        assert await old_keys(client, prefix) == []


async def test_a_state_saved_since_is_not_replaced_by_the_earlier_one() -> None:
    async with client_and_prefix() as (client, prefix):
        session, memory, restored = (
            RedisSession(client=client, key_prefix=prefix),
            InMemoryMemory(),
            InMemoryMemory(),
        )
        await client.set(earlier_state_key(prefix, "ann", "s"), "{}")
        await memory.add(Msg("Ann", "newer", "user"))
        await session.save_session_state("s", "ann", memory=memory)
        await migrate(client, prefix=prefix)
        await session.load_session_state("s", "ann", False, memory=restored)
        assert [msg.content for msg in await restored.get_memory()] == ["newer"]
        assert await old_keys(client, prefix) == []


async def test_a_cluster_is_not_migrated() -> None:
    async with redis_client("redis-cluster") as client:
        assert isinstance(client, RedisCluster), cluster_url("redis-cluster")
        with pytest.raises(InvalidInput, match="before it joins one"):
            await migrate(client)  # type: ignore[arg-type]
