"""A page costs what is on it: what is passed over is neither walked nor read."""

from __future__ import annotations

import re
from itertools import count
from typing import Any

import pytest
from redis.asyncio import Redis
from sqlalchemy import event
from sqlalchemy.ext.asyncio import create_async_engine

from memoryspace import Record, RedisStore, Scope, SQLStore, Where
from memoryspace.store.sessions import Sessions
from memoryspace.testing import fresh_scope

from backends import server_url, sql_url


class Looked:
    """An entry that counts how often anybody asks for its place."""

    looks = 0

    def __init__(self, seq: int, session: str, kind: str, *marks: str) -> None:
        self._seq = seq
        self.id, self.session, self.kind = f"id {seq}", session, kind
        self.marks, self.expires_at = frozenset(marks), None

    @property
    def seq(self) -> int:
        Looked.looks += 1
        return self._seq


def filled(sessions: int, each: int, *, in_turn: bool) -> Sessions[Looked]:
    index: Sessions[Looked] = Sessions()
    numbers = count(1)
    order = [n for _ in range(each) for n in range(sessions)]
    for n in order if in_turn else sorted(order):
        seq = next(numbers)
        kind = "fact" if seq % 4 == 0 else "note"
        marks = ["hidden"] if seq % 400 == 1 else []
        index.open("Ann", f"s{n}").add(Looked(seq, f"s{n}", kind, *marks))
    return index


@pytest.mark.parametrize("in_turn", [True, False])
@pytest.mark.parametrize("newest", [True, False])
def test_a_page_in_ram_looks_at_few_entries(in_turn: bool, newest: bool) -> None:
    index = filled(10, 2_000, in_turn=in_turn)
    where = Where(kind="note", without=frozenset({"hidden"}), limit=10, skip=9_000, newest=newest)
    index.choose(Scope("Ann"), where, 0.0)  # makes the lists
    Looked.looks = 0
    found = index.choose(Scope("Ann"), where, 0.0)
    assert Looked.looks < 6_000  # some 20 halvings, 10 sessions, 11 steps of bisection, twice
    whole = index.choose(Scope("Ann"), Where(kind="note", without=where.without), 0.0)
    assert found == (whole[-9_010:-9_000] if newest else whole[9_000:9_010])


def test_lists_for_pages_follow_every_change() -> None:
    index = filled(3, 300, in_turn=True)
    scope, first = Scope("Ann"), Where(kind="note", limit=5, skip=2)

    def check() -> None:
        whole = index.choose(scope, Where(kind="note"), 0.0)
        assert index.choose(scope, first, 0.0) == whole[2:7]
        assert (
            index.choose(scope, Where(limit=4, newest=True), 0.0)
            == (index.choose(scope, Where(), 0.0)[-4:])
        )

    check()
    index.open("Ann", "s1").add(Looked(10_000, "s1", "note"))
    check()
    third = index.choose(scope, Where(kind="note"), 0.0)[2]
    marked = Looked(third.seq, third.session, third.kind, "x")
    index.of("Ann", third).remark(third, marked)
    assert index.choose(scope, first, 0.0)[0] is marked
    index.remove("Ann", [marked])
    check()
    index.remove("Ann", index.choose(scope, Where(limit=200, skip=10), 0.0))
    check()


async def _commands(client: Redis, store: RedisStore, scope: Scope, where: Where) -> int:
    await client.config_resetstat()
    await store.select(scope, where)
    stats = await client.info("commandstats")
    return sum(each["calls"] for name, each in stats.items() if name != "cmdstat_config|resetstat")


async def test_a_page_in_redis_costs_the_same_commands_wherever_it_is() -> None:
    client = Redis.from_url(server_url("redis"))
    store, user = RedisStore(client), fresh_scope(None)
    one, two = Scope(user.user, "one"), Scope(user.user, "two")
    notes = [Record(str(n), f"note {n}", kind="note") for n in range(4_000)]
    for start in range(0, 4_000, 500):
        await store.append(one, notes[start : start + 250])
        await store.append(two, notes[start + 250 : start + 500])

    def page(skip: int) -> Where:
        without = frozenset({"hidden"})
        return Where(kind="note", without=without, limit=10, skip=skip, newest=True)

    await store.select(one, page(0))
    assert await _commands(client, store, one, page(0)) == await _commands(
        client, store, one, page(1_900)
    )
    assert await _commands(client, store, user, page(3_900)) < 150
    await client.aclose()


@pytest.mark.parametrize("backend", ["sqlite", "postgres", "mariadb"])
async def test_a_page_in_a_database_is_found_by_an_index(backend: str, tmp_path: str) -> None:
    engine = create_async_engine(sql_url(backend, tmp_path))
    store, few, many = SQLStore(engine), fresh_scope(), fresh_scope()
    for scope, number in ((many, 3_000), (few, 200)):
        await store.append(scope, [Record(str(n), f"note {n}", kind="note") for n in range(number)])
    sent: list[tuple[str, Any]] = []
    async with engine.begin() as connection:
        of_table = "ANALYZE TABLE memoryspace_record" if backend == "mariadb" else "ANALYZE"
        await connection.exec_driver_sql(of_table)

    @event.listens_for(engine.sync_engine, "before_cursor_execute")
    def note(_: Any, __: Any, statement: str, values: Any, *more: Any) -> None:
        sent.append((statement, values))

    where = Where(kind="note", limit=10, skip=100, newest=True)
    found = await store.select(Scope(few.user), where)
    assert [each.id for each in found] == [str(n) for n in range(90, 100)]
    statement, values = sent[-1]
    explain = "EXPLAIN QUERY PLAN " if backend == "sqlite" else "EXPLAIN "
    async with engine.connect() as connection:
        rows = await connection.exec_driver_sql(explain + statement, values)
        plan = " ".join(str(row) for row in rows)
    assert re.search("memoryspace_record_(seq|order|pkey)", plan), plan
    skipping = statement.split("JOIN (", 1)[1].split(")", 1)[0]
    assert "value" not in skipping.partition("FROM")[0]
    await engine.dispose()
