"""A stored record that no longer reads back is reported and skipped; the rest is not harmed."""

from __future__ import annotations

import logging

import pytest
from redis.asyncio import Redis
from sqlalchemy import update
from sqlalchemy.ext.asyncio import create_async_engine

from memoryspace import Msg, Record, RedisStore, Scope, SQLStore, Store, Where
from memoryspace.store.sql.schema import records as table
from memoryspace.testing import capture, fresh_scope

from backends import SQL_STORE_BACKENDS, server_url, sql_url

BROKEN = [
    "",
    "{",
    "null",
    "[]",
    "{}",
    '"text"',
    '{"name": "Ann"}',
    '{"name":1,"role":"x","content":2}',
]


def message(id_: str) -> Record:
    msg = Msg("Ann", "hello", "user")
    msg.id = id_
    return Record(id_, msg, "hello", frozenset({"x"}))


async def check_reported_and_skipped(
    store: Store, scope: Scope, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    with capture(store.events, "record_corrupt") as events:
        found = await store.select(scope)
        assert [each.id for each in found] == ["good", "fine"]
        assert len(await store.values(scope)) == 2
    assert [event.name for event in events] == ["record_corrupt"] * 2
    assert {event.data["id"] for event in events} == {"bad"}
    assert "'bad'" in caplog.text
    assert scope.user in caplog.text
    assert await store.append(scope, [message("later")]) == ["later"]
    assert await store.mark(scope, Where(marks=frozenset({"x"})), add={"y"}) == 4
    assert await store.delete(scope, Where(ids=frozenset({"bad"}))) == ["bad"]
    assert [each.id for each in await store.select(scope)] == ["good", "fine", "later"]


@pytest.mark.parametrize("broken", BROKEN)
@pytest.mark.parametrize("backend", SQL_STORE_BACKENDS)
async def test_a_broken_row(
    backend: str, broken: str, tmp_path: str, caplog: pytest.LogCaptureFixture
) -> None:
    engine = create_async_engine(sql_url(backend, tmp_path))
    store, scope = SQLStore(engine), fresh_scope()
    await store.append(scope, [message("good"), message("bad"), message("fine")])
    async with engine.begin() as connection:
        this = (table.c.user_id == scope.user, table.c.id == "bad")
        await connection.execute(update(table).where(*this).values(value=broken))
    await check_reported_and_skipped(store, scope, caplog)
    await engine.dispose()


@pytest.mark.parametrize("broken", [*BROKEN, 'message\0{"value": {}}', "no kind", "\xff"])
@pytest.mark.parametrize("decoded", [True, False])
async def test_a_broken_redis_value(
    decoded: bool, broken: str, caplog: pytest.LogCaptureFixture
) -> None:
    client = Redis.from_url(server_url("redis"), decode_responses=decoded)
    store, scope = RedisStore(client), fresh_scope()
    await store.append(scope, [message("good"), message("bad"), message("fine")])
    key = f"user:{{{scope.user}}}:session:{scope.session}:records"
    value = b"\xff\xfe" if broken == "\xff" else broken.encode()
    await client.hset(key, "bad", b"message\0" + value if broken in BROKEN else value)
    await check_reported_and_skipped(store, scope, caplog)
    await client.aclose()
