"""RedisStore on a cluster: slots, moving slots, replicas, connections, and what it says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis.asyncio import Redis
from redis.asyncio.cluster import RedisCluster

from memoryspace import Record, RedisMemory, RedisStore, Scope, Where, open_store
from memoryspace.errors import InvalidInput, NotReplicated, StoreError, StoreUnavailable
from memoryspace.memory import InMemoryMemory
from memoryspace.message import Msg, new_id
from memoryspace.session import RedisSession
from memoryspace.store.redis.client import client_at
from memoryspace.store.redis.layout import SLOTS, escaped, slot_of, tag_of, unescaped
from memoryspace.testing import fresh_scope

import clusters
from backends import CLUSTER_BACKENDS, cluster_url, redis_client, server_url

KINDS = pytest.mark.parametrize("backend", CLUSTER_BACKENDS)
HOSTILE = ["a}b", "{a", "{a}", "}{", "{}", "%7B", "a%7Bb", "{{", "}}", "a:b", "a", "a{b}c", "用{户"]


def note(id_: str, text: str = "") -> Record:
    return Record(id_, text or id_, kind="note")


def servers_of(backend: str) -> clusters.Servers:
    cluster_url(backend)
    return clusters.shared(backend.removesuffix("-cluster"))


@asynccontextmanager
async def cluster(backend: str = "redis-cluster") -> AsyncIterator[RedisCluster]:
    client = redis_client(backend)
    assert isinstance(client, RedisCluster)
    async with client:
        yield client


async def keys_of(client: RedisCluster, prefix: str) -> list[bytes]:
    return [key async for key in client.scan_iter(f"{prefix}*", target_nodes="primaries")]


async def test_all_keys_of_a_user_are_in_one_slot_whatever_the_name() -> None:
    async with cluster() as client:
        for user in HOSTILE:
            prefix = new_id()
            store = RedisStore(client, prefix=prefix, ttl=500)
            for session in ("s", "{other}", "}"):
                passing = Record("x", "x", kind="note", marks=frozenset("m"), expires_at=4e9)
                await store.append(Scope(user, session), [passing, note("y")])
            keys = await keys_of(client, prefix)
            assert len(keys) > 3 * 6
            assert {client.keyslot(key) for key in keys} == {slot_of(escaped(user))}
            await store.delete(Scope(user))


async def test_users_with_braces_in_their_names_are_kept_apart() -> None:
    async with cluster() as client:
        store = RedisStore(client, prefix=new_id())
        for user in HOSTILE:
            await store.append(Scope(user, "s"), [note(user)])
        for user in HOSTILE:
            assert [each.id for each in await store.select(Scope(user))] == [user]
        assert sorted((await store.users()).users) == sorted(HOSTILE)


@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=20))
def test_an_escaped_name_comes_back_and_has_no_brace(name: str) -> None:
    assert unescaped(escaped(name)) == name
    assert not set(escaped(name)) & set("{}:")


async def test_every_slot_has_a_tag_and_the_server_agrees() -> None:
    assert [slot_of(tag_of(slot)) for slot in range(SLOTS)] == [*range(SLOTS)]
    async with cluster() as client:
        for name in ("123456789", "用户", "a%7Bb"):
            said = await client.execute_command("CLUSTER KEYSLOT", name, target_nodes="random")
            assert said == slot_of(name)


@pytest.mark.parametrize("prefix", ["{", "a{b", "{}", "{}{a}"])
def test_a_prefix_that_would_break_the_tags_is_refused(prefix: str) -> None:
    for make in (RedisStore, lambda url, prefix: RedisSession(key_prefix=prefix)):
        with pytest.raises(InvalidInput, match="hash tag"):
            make("redis://host", prefix=prefix)


async def test_a_prefix_with_a_whole_tag_has_all_users_in_one_slot() -> None:
    async with cluster() as client:
        prefix = f"{{{new_id()}}}:"
        store = RedisStore(client, prefix=prefix)
        for user in ("ann", "bob", "{c}"):
            await store.append(Scope(user, "s"), [note("a")])
        assert {client.keyslot(key) for key in await keys_of(client, prefix)} == {
            slot_of(prefix[1:-2])
        }
        assert sorted((await store.users()).users) == ["ann", "bob", "{c}"]


@KINDS
async def test_a_user_whose_slot_is_moving_is_waited_for(backend: str) -> None:
    """Half of the keys are on either server. No script runs before they are together again."""
    servers = servers_of(backend)
    async with cluster(backend) as client:
        store, scope = RedisStore(client, prefix=new_id()), fresh_scope()
        await store.append(scope, [note(str(n)) for n in range(50)])
        slot = slot_of(escaped(scope.user))
        with servers.moving(slot, servers.another(slot)) as source:
            refused = servers.refusals(source, "TRYAGAIN")
            calls = [
                store.select(scope),
                store.append(scope, [note("new")]),
                store.replace(scope, Where(ids=frozenset("0")), [note("0 again")], if_found=True),
                store.delete(Scope(scope.user), Where(ids=frozenset("1"))),
                store.sessions(scope.user),
            ]
            tasks = [asyncio.create_task(call) for call in calls]
            while servers.refusals(source, "TRYAGAIN") < refused + len(calls):  # noqa: ASYNC110
                await asyncio.sleep(0.01)  # the servers count; nothing tells this process
            assert not any(task.done() for task in tasks)
        found, added, replaced, deleted, sessions = await asyncio.gather(*tasks)
        assert (added, replaced, deleted, sessions) == (["new"], ["0 again"], ["1"], ["session"])
        assert len(found) in (49, 50, 51)
        left = [each.id for each in await store.select(scope)]
        assert sorted(left) == sorted([*map(str, range(2, 50)), "new", "0 again"])


@KINDS
async def test_a_saved_state_is_found_on_the_server_that_is_receiving_it(backend: str) -> None:
    servers, user = servers_of(backend), f"user-{new_id()}"
    slot, memory, restored = slot_of(user), InMemoryMemory(), InMemoryMemory()
    await memory.add(Msg("Ann", "kept", "user"))
    async with cluster(backend) as client:
        session = RedisSession(client=client, key_ttl=500)
        await session.save_session_state("s", user, memory=memory)
        with servers.moving(slot, servers.another(slot), part=1.0) as source:
            sent_on = servers.refusals(source, "ASK")
            await session.load_session_state("s", user, False, memory=restored)
            assert servers.refusals(source, "ASK") > sent_on
        assert [msg.content for msg in await restored.get_memory()] == ["kept"]
        await session.load_session_state("s", user, False, memory=restored)


@KINDS
async def test_every_user_is_listed_once_while_slots_move(backend: str) -> None:
    servers = servers_of(backend)
    async with cluster(backend) as client:
        store, users = RedisStore(client, prefix=new_id()), [f"user {n}" for n in range(40)]
        for user in users:
            await store.append(Scope(user, "s"), [note("a")])
        found: list[str] = []
        cursor = None
        by_slot = sorted(users, key=slot_of)
        while True:
            page = await store.users(cursor=cursor, limit=9)
            found.extend(page.users)
            cursor = page.cursor
            if cursor is None:
                break
            for user in {by_slot[len(found) // 2], by_slot[-1 - len(found) // 9]}:
                with servers.moving(slot_of(user), servers.another(slot_of(user))):
                    pass
        assert found == by_slot


async def test_a_change_waits_for_the_replicas_it_is_told_to() -> None:
    async with cluster() as client:
        scope = fresh_scope()
        await RedisStore(client, wait_replicas=1, wait_timeout=4.5).append(scope, [note("a")])
        two = RedisStore(client, wait_replicas=2, wait_timeout=0.01)
        with pytest.raises(NotReplicated, match="1 of 2 replicas confirmed it within"):
            await two.append(scope, [note("b")])
        assert [each.id for each in await two.select(scope)] == ["a", "b"]
        memory = RedisMemory("m", scope.user, client=client, wait_replicas=2, wait_timeout=0.01)
        with pytest.raises(NotReplicated):
            await memory.add(Msg("Ann", "hello", "user"))
        session = RedisSession(client=client, wait_replicas=2, wait_timeout=0.01)
        with pytest.raises(NotReplicated):
            await session.save_session_state("s", scope.user, memory=InMemoryMemory())


async def test_a_server_without_replicas_confirms_nothing() -> None:
    scope = fresh_scope()
    async with RedisStore(f"{server_url('redis')}?wait_replicas=1&wait_timeout=0.01") as store:
        with pytest.raises(NotReplicated, match="0 of 1 replicas"):
            await store.append(scope, [note("a")])
        assert await store.count(scope) == 1


async def test_calls_stay_within_the_connections_of_the_client() -> None:
    async with RedisStore(f"{cluster_url('redis-cluster')}?max_connections=2") as store:
        assert isinstance(store.client, RedisCluster)
        scopes = [fresh_scope() for _ in range(60)]
        await asyncio.gather(*(store.append(scope, [note("a")]) for scope in scopes))
        assert await asyncio.gather(*map(store.count, scopes)) == [1] * 60
        opened = [len(node._connections) for node in store.client.get_primaries()]
        assert 0 < max(opened) <= 2


async def test_a_client_that_was_given_stays_open() -> None:
    async with cluster() as client:
        async with RedisStore(client) as store:
            await store.count(fresh_scope())
        assert await client.ping(target_nodes="random")


def test_a_cluster_serves_several_event_loops_one_after_the_other() -> None:
    scope = fresh_scope()
    store = open_store(cluster_url("redis-cluster"))
    for number in range(3):
        asyncio.run(store.append(scope, [note(str(number))]))
    assert asyncio.run(store.count(scope)) == 3


async def test_a_cluster_that_is_not_there_says_that_nothing_has_happened(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("memoryspace.store.redis.cluster.REPEATED_WITHIN", 0.05)
    async with open_store("redis+cluster://127.0.0.1:1") as store:
        with pytest.raises(StoreUnavailable, match="nothing has happened"):
            await store.append(fresh_scope(), [note("a")])


async def test_a_client_of_one_server_does_not_take_a_cluster_for_one() -> None:
    servers = servers_of("redis-cluster")
    scopes = [fresh_scope() for _ in range(20)]  # some are on other servers
    async with Redis(port=servers.ports[0]) as client:
        store = RedisStore(client)
        said = await asyncio.gather(*map(store.count, scopes), return_exceptions=True)
    refused = [each for each in said if isinstance(each, StoreError)]
    assert refused
    assert all("redis+cluster://" in str(each) for each in refused)


async def test_what_remains_is_told_of_every_server() -> None:
    async with cluster() as client:
        store = RedisStore(client)
        await store.append(fresh_scope(), [note("a")])
        assert [each.where for each in await store.remains()] == [
            "Redis's snapshot, if one was ever saved"
        ]


async def test_earlier_data_in_a_cluster_is_refused_by_name() -> None:
    async with cluster() as client:
        prefix = new_id()
        await client.set(f"{prefix}memoryspace:seq", 7)
        store = RedisStore(client, prefix=prefix)
        for call in (store.count(Scope("ann")), store.users()):
            with pytest.raises(StoreError, match=r"data of an earlier version.*migrate"):
                await call
        assert isinstance(client_at(cluster_url("redis-cluster")), RedisCluster)


@pytest.mark.parametrize("kind", ["redis", "redis-cluster"])
async def test_a_writer_that_is_cancelled_stops(kind: str) -> None:
    async with redis_client(kind) as client:
        store = RedisStore(client)

        async def write(started: asyncio.Event, scope: Scope) -> None:
            while True:
                await store.append(scope, [note(new_id())])
                started.set()

        for turns in range(30):
            started = asyncio.Event()
            task = asyncio.create_task(write(started, fresh_scope()))
            await started.wait()
            for _ in range(turns):  # some end inside the sending of a command
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task], timeout=60)
            assert task.cancelled()
