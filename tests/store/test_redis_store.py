"""RedisStore under strain: changing lifetimes, lost replies, long sessions, several event loops."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as LostConnection
from redis.exceptions import ResponseError

from memoryspace import Msg, Record, RedisMemory, RedisStore, Scope, Where
from memoryspace.errors import InvalidInput, StoreError, StoreUnavailable
from memoryspace.message import new_id
from memoryspace.store.redis.layout import slot_of
from memoryspace.store.redis.server import call
from memoryspace.testing import ManualClock, fresh_scope
from memoryspace.testing.store_tools import Mirror

from backends import server_url

PARTS = ("records", "order", "marks", "index", "expiry", "stamp")


@asynccontextmanager
async def client_and_scope() -> AsyncIterator[tuple[Redis, Scope]]:
    client = Redis.from_url(server_url("redis"))
    yield client, fresh_scope()
    await client.aclose()


def note(id_: str, *marks: str, expires_at: float | None = None) -> Record:
    return Record(id_, id_, id_, frozenset(marks), kind="note", expires_at=expires_at)


def key(scope: Scope, part: str) -> str:
    return f"user:{{{scope.user}}}:session:{scope.session}:{part}"


async def expire_now(client: Redis, *keys: str) -> None:
    for each in keys:
        await client.pexpire(each, 0)  # what time does


async def test_writing_without_a_lifetime_makes_a_session_stay() -> None:
    async with client_and_scope() as (client, scope):
        store = RedisStore(client, ttl=500)
        await store.append(scope, [note("a", "x", expires_at=4e9)])
        store.ttl = None
        await store.count(scope)
        assert await client.ttl(key(scope, "order")) > 0
        await store.append(scope, [note("b")])
        assert {await client.ttl(key(scope, part)) for part in PARTS} == {-1}
        assert await client.ttl(f"user:{{{scope.user}}}:sessions") == -1


async def test_a_record_that_comes_again_has_nothing_of_the_old_one() -> None:
    """Even if a part of the session was lost, as an evicting server may do."""
    async with client_and_scope() as (client, scope):
        clock = ManualClock()
        store = RedisStore(client, clock=clock)
        await store.append(scope, [note("a", "old", expires_at=clock.now + 10)])
        await expire_now(client, key(scope, "records"), key(scope, "order"))
        await store.append(scope, [note("a", "new")])
        (found,) = await store.select(scope)
        assert found.marks == {"new"}
        assert await store.count(scope, Where(marks=frozenset({"old"}))) == 0


async def test_places_grow_even_if_the_counter_is_lost() -> None:
    async with client_and_scope() as (client, scope):
        prefix = new_id()
        store = RedisStore(client, prefix=prefix)
        await store.append(scope, [note(str(n)) for n in range(5)])
        await client.delete(*[key async for key in client.scan_iter(f"{prefix}seq:*")])
        await store.append(scope, [note("newest")])
        assert [record.id for record in await store.select(scope)][-1] == "newest"


async def test_a_lost_counter_does_not_hide_what_came() -> None:
    async with client_and_scope() as (client, scope):
        prefix, mirror = new_id(), Mirror()
        store = RedisStore(client, prefix=prefix)
        await store.append(scope, [note(str(n)) for n in range(5)])
        await mirror.catch_up(store, scope.user)
        await store.delete(scope, Where(limit=1, newest=True))
        await client.delete(*[key async for key in client.scan_iter(f"{prefix}seq:*")])
        await store.append(scope, [note("newest")])
        await mirror.catch_up(store, scope.user)
        assert [id_ for _, _, id_ in mirror.held()] == ["0", "1", "2", "3", "newest"]


async def test_a_session_of_the_first_release_is_followed() -> None:
    """It has no stamp until more is done to it than an append."""
    async with client_and_scope() as (client, scope):
        store, mirror = RedisStore(client, ttl=500), Mirror()
        await store.append(scope, [note("a"), note("b")])
        await client.delete(key(scope, "stamp"))
        await mirror.catch_up(store, scope.user)
        await store.append(scope, [note("c")])
        assert (await mirror.catch_up(store, scope.user)).kept == {}
        store.ttl = None
        await store.delete(Scope(scope.user), Where(ids=frozenset({"a"})))
        await mirror.catch_up(store, scope.user)
        assert [id_ for _, _, id_ in mirror.held()] == ["b", "c"]
        assert 0 < await client.ttl(key(scope, "stamp")) <= 500


async def test_following_prolongs_no_session() -> None:
    async with client_and_scope() as (client, scope):
        store = RedisStore(client, ttl=500)
        await store.append(scope, [note("a")])
        await client.expire(key(scope, "order"), 100)
        await store.changes(scope.user)
        assert await client.ttl(key(scope, "order")) <= 100


async def test_a_session_that_expired_is_told_to_be_gone() -> None:
    async with client_and_scope() as (client, scope):
        store, mirror = RedisStore(client, ttl=500), Mirror()
        await store.append(scope, [note("a")])
        await mirror.catch_up(store, scope.user)
        await expire_now(client, *(key(scope, part) for part in PARTS))
        assert (await mirror.catch_up(store, scope.user)).gone == {scope.session}
        assert mirror.held() == []


async def test_a_live_session_is_listed_again_by_any_use() -> None:
    async with client_and_scope() as (client, scope):
        store = RedisStore(client, ttl=500)
        await store.append(scope, [note("a")])
        await expire_now(client, f"user:{{{scope.user}}}:sessions")
        await store.count(scope)
        assert await store.delete(Scope(scope.user)) == ["a"]
        assert await store.count(scope) == 0


async def test_reading_all_sessions_prolongs_none() -> None:
    async with client_and_scope() as (client, scope):
        lasting = RedisStore(client)
        await lasting.append(scope, [note("a")])
        await RedisStore(client, ttl=500).count(Scope(scope.user))
        assert await client.ttl(key(scope, "order")) == -1


async def test_names_of_sessions_that_are_gone_do_not_pile_up() -> None:
    async with client_and_scope() as (client, scope):
        store, listed = RedisStore(client, ttl=500), f"user:{{{scope.user}}}:sessions"
        for number in range(60):
            each = Scope(scope.user, f"session {number}")
            await store.append(each, [note("a")])
            await expire_now(client, *(key(each, part) for part in PARTS))
        assert await client.scard(listed) < 60
        assert await store.select(Scope(scope.user)) == []
        assert await client.exists(listed) == 0


async def test_a_refused_batch_leaves_nothing_behind() -> None:
    async with client_and_scope() as (client, scope):
        store = RedisStore(client)
        for wrong in (float("nan"), float("inf"), True, "soon"):
            bad = note("b", expires_at=wrong)  # type: ignore[arg-type]  # wrong on purpose
            with pytest.raises(InvalidInput, match="expires_at"):
                await store.append(scope, [note("a"), bad])
        with pytest.raises(InvalidInput, match="at most 100000 records"):
            await store.append(scope, [note(str(n)) for n in range(100_001)])
        assert await client.exists(*(key(scope, part) for part in PARTS)) == 0


async def test_only_calls_that_may_be_repeated_are() -> None:
    for repeatable, sent in ((True, 2), (False, 1)):
        calls = []

        async def send(calls: list[int] = calls) -> None:
            calls.append(1)
            raise LostConnection("closed")

        with pytest.raises(StoreUnavailable, match="may or may not have happened"):
            await call(send, repeatable=repeatable)
        assert len(calls) == sent


async def test_a_server_that_is_busy_with_a_script_is_waited_for() -> None:
    answers = iter([ResponseError("BUSY Redis is busy running a script"), None])

    async def send() -> str:
        answer = next(answers)
        if answer is not None:
            raise answer
        return "done"

    assert await call(send, repeatable=False) == "done"


async def test_a_server_without_scripts_is_named() -> None:
    async def send() -> None:
        raise ResponseError("unknown command 'evalsha'")

    with pytest.raises(StoreError, match=r"fakeredis\[lua\]"):
        await call(send, repeatable=True)


async def test_every_concurrent_duplicate_is_kept() -> None:
    async with client_and_scope() as (client, scope):
        memory = RedisMemory("session", scope.user, client=client)
        msg = Msg("Ann", "again", "user")
        await asyncio.gather(*(memory.add(msg, allow_duplicates=True) for _ in range(8)))
        assert await memory.size() == 8


def test_one_memory_serves_several_event_loops_one_after_the_other() -> None:
    memory = RedisMemory("session", f"user-{new_id()}", client=Redis.from_url(server_url("redis")))
    for number in range(3):
        asyncio.run(memory.add(Msg("Ann", str(number), "user")))
    assert asyncio.run(memory.size()) == 3


async def test_the_summary_does_not_slow_down_or_join_the_messages() -> None:
    async with client_and_scope() as (client, scope):
        store = RedisStore(client)
        messages = [Msg("Ann", str(n), "user") for n in range(300)]
        await store.append(scope, [Record(m.id, m, str(m.content)) for m in messages])
        await store.append(scope, [note("n1"), Record("s", "text", kind="summary"), note("n2")])
        ids = [msg.id for msg in messages]
        kind = Where(kind="message")
        assert [r.id for r in await store.select(scope, kind)] == ids
        assert await store.count(scope, kind) == 300
        last = Where(kind="message", limit=2, newest=True)
        assert [r.id for r in await store.select(scope, last)] == ids[-2:]
        assert [r.id for r in await store.select(scope, Where(kind="note"))] == ["n1", "n2"]


async def test_names_of_users_who_are_gone_do_not_pile_up() -> None:
    async with client_and_scope() as (client, _):
        prefix = new_id()
        store = RedisStore(client, prefix=prefix, ttl=500)
        tag, *others = same_slot(60)
        for user in (tag, *others):
            await store.append(Scope(user, "s"), [note("a")])
            keys = [f"{prefix}user:{{{user}}}:session:s:{part}" for part in PARTS]
            await expire_now(client, *keys, f"{prefix}user:{{{user}}}:sessions")
        assert 0 < await client.zcard(f"{prefix}users:{{{tag}}}") < 60
        assert (await store.users()).users == ()
        assert await client.zcard(f"{prefix}users:{{{tag}}}") == 0


def same_slot(count: int) -> list[str]:
    """Return names of users in one slot, first the least number."""
    numbers = (str(number) for number in itertools.count())
    return [*itertools.islice((each for each in numbers if slot_of(each) == slot_of("0")), count)]
