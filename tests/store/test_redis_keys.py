"""What RedisMemory leaves in the server: few keys, all with a time to live, nobody else's."""

from __future__ import annotations

import pytest
from redis.asyncio import Redis

from memoryspace import InMemoryMemory, Msg, Record, RedisMemory, RedisStore, Scope, Where
from memoryspace.errors import InvalidInput
from memoryspace.message import new_id
from memoryspace.testing import ManualClock

from backends import server_url


def says(count: int) -> list[Msg]:
    return [Msg("Ann", str(n), "user") for n in range(count)]


async def ttls(client: Redis, prefix: str) -> dict[str, int]:
    """Return the keys of users. Others have a list of users, counters and the last answers."""
    return {
        key.decode(): await client.ttl(key) async for key in client.scan_iter(f"{prefix}user:*")
    }


async def test_every_key_gets_its_time_to_live_with_the_first_add() -> None:
    client, prefix = Redis.from_url(server_url("redis")), new_id()
    memory = RedisMemory("s", "u", client=client, key_prefix=prefix, key_ttl=500)
    await memory.add(says(3), marks=["x", "y"])
    found = await ttls(client, prefix)
    assert len(found) == 6
    assert all(490 <= left <= 501 for left in found.values()), found
    await client.aclose()


@pytest.mark.parametrize(
    "use",
    [
        lambda memory: memory.get_memory(),
        lambda memory: memory.size(),
        lambda memory: memory.add(says(1)),
        lambda memory: memory.update_messages_mark("z"),
        lambda memory: memory.delete(["absent"]),
        lambda memory: memory.update_compressed_summary("summary"),
    ],
)
async def test_every_use_keeps_the_whole_session_alive(use) -> None:  # type: ignore[no-untyped-def]  # a lambda
    client, prefix = Redis.from_url(server_url("redis")), new_id()
    memory = RedisMemory("s", "u", client=client, key_prefix=prefix, key_ttl=500)
    await memory.add(says(3), marks=["x", "y"])
    for key in await ttls(client, prefix):
        await client.expire(key, 100)
    await use(memory)
    assert all(left >= 490 for left in (await ttls(client, prefix)).values())
    await client.aclose()


async def test_an_expired_session_is_gone_as_a_whole() -> None:
    client, prefix = Redis.from_url(server_url("redis")), new_id()
    memory = RedisMemory("s", "u", client=client, key_prefix=prefix)
    await memory.add(says(3), marks="x")
    memory.key_ttl = 500
    await memory.update_compressed_summary("summary")
    for key in await ttls(client, prefix):
        await client.pexpire(key, 0)  # what time does
    assert await memory.get_memory() == []
    assert await memory.size() == 0
    await memory.add(says(1))
    assert await memory.get_memory(mark="x") == []
    await client.aclose()


async def test_a_session_name_with_a_star_touches_no_other_session() -> None:
    client, prefix = Redis.from_url(server_url("redis")), new_id()
    other = RedisMemory("glob-b", "u", client=client, key_prefix=prefix)
    await other.add(says(1), marks="x")
    starry = RedisMemory("glob-*", "u", client=client, key_prefix=prefix, key_ttl=500)
    await starry.add(says(1))
    await starry.get_memory()
    found = await ttls(client, prefix)
    assert {left for key, left in found.items() if "glob-b" in key} == {-1}
    assert all(left > 0 for key, left in found.items() if "glob-*" in key)
    assert found[f"{prefix}user:{{u}}:sessions"] == -1
    await starry.clear()
    assert await other.size() == 1
    await client.aclose()


async def test_clearing_leaves_no_key_behind() -> None:
    client, prefix = Redis.from_url(server_url("redis")), new_id()
    memory = RedisMemory("s", "u", client=client, key_prefix=prefix)
    await memory.add(says(5), marks=["x", "压缩"])
    await memory.update_compressed_summary("summary")
    await memory.clear()
    assert await ttls(client, prefix) == {}
    await client.aclose()


async def test_what_empties_a_session_leaves_no_key_behind() -> None:
    client, prefix, clock = Redis.from_url(server_url("redis")), new_id(), ManualClock()
    store = RedisStore(client, prefix=prefix, clock=clock)
    scope, one = Scope("u", "s"), Where(ids=frozenset({"a"}))
    passing = Record("a", "a", kind="note", expires_at=clock.now + 5)
    await store.append(scope, [passing])
    await store.delete(scope, one)
    assert await ttls(client, prefix) == {}
    await store.append(scope, [passing])
    await store.delete(Scope("u"), one)
    assert await ttls(client, prefix) == {}
    await store.append(scope, [passing])
    await store.replace(scope, one, [])
    assert await ttls(client, prefix) == {}
    for look in (store.changes("u"), store.sessions("u"), store.select(Scope("u"))):
        await store.append(scope, [passing])
        clock.advance(5)
        await look
        clock.advance(-5)
        await store.sessions("u")
        assert await ttls(client, prefix) == {}
    await client.aclose()


async def test_no_command_that_walks_the_keyspace_is_ever_sent() -> None:
    client, prefix = Redis.from_url(server_url("redis")), new_id()
    memory = RedisMemory("s", "u", client=client, key_prefix=prefix, key_ttl=500)
    await client.config_resetstat()
    await memory.add(says(20), marks="x")
    await memory.get_memory(exclude_mark="x")
    await memory.update_messages_mark("y", "x")
    await memory.delete_by_mark("y")
    await memory.clear()
    used = {name.removeprefix("cmdstat_") for name in await client.info("commandstats")}
    assert not used & {"scan", "keys", "sscan", "hscan", "zscan", "flushdb", "randomkey"}
    assert "evalsha" in used
    await client.aclose()


async def test_an_add_costs_the_same_commands_however_much_is_stored() -> None:
    client, prefix = Redis.from_url(server_url("redis")), new_id()
    memory = RedisMemory("s", "u", client=client, key_prefix=prefix, key_ttl=500)

    async def commands_of_an_add() -> int:
        # The list's own time is renewed only when it is less than asked for: let some pass.
        await client.expire(f"{prefix}user:{{u}}:sessions", 100)
        await client.config_resetstat()
        await memory.add(says(1))
        stats = await client.info("commandstats")
        return sum(each["calls"] for each in stats.values())

    await memory.add(says(1))
    when_small = await commands_of_an_add()
    await memory.add(says(2_000), marks="x")
    assert await commands_of_an_add() == when_small
    await client.aclose()


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "60"])
def test_a_time_to_live_is_a_whole_number_of_seconds(wrong: object) -> None:
    with pytest.raises(InvalidInput, match="whole number of seconds"):
        RedisMemory(key_ttl=wrong)  # type: ignore[arg-type]  # wrong on purpose


@pytest.mark.parametrize("wrong", ["", "a\nb", "x" * 256])
def test_unusable_users_and_sessions_are_refused(wrong: str) -> None:
    for make in (RedisMemory, InMemoryMemory):
        with pytest.raises(InvalidInput):
            make(user_id=wrong)
        with pytest.raises(InvalidInput):
            make(session_id=wrong)
