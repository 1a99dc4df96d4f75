"""Whoever follows ``changes`` has what the store has, whatever steps were taken in between."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from redis.asyncio import Redis
from sqlalchemy import update
from sqlalchemy.ext.asyncio import create_async_engine

from memoryspace import MemoryStore, Record, RedisStore, Scope, SQLStore, Store, Where
from memoryspace.message import new_id
from memoryspace.store.contract import Changes
from memoryspace.store.sql.schema import records as table
from memoryspace.testing import STORE_CONTRACT, ManualClock, StoreCheck, capture, fresh_scope
from memoryspace.testing.store_tools import Mirror

from backends import SQL_STORE_BACKENDS, STORE_BACKENDS, server_url, sql_url, store_maker

IDS = st.sampled_from(["1", "2", "3", "a:b", "长"])
SESSIONS = st.sampled_from(["one", "two", "three"])
LIFETIMES = st.sampled_from([None, 5])
NEW = st.lists(st.tuples(IDS, LIFETIMES), min_size=1, max_size=3)
CHOSEN = st.builds(Where, ids=st.none() | st.frozensets(IDS, max_size=2))


class TellsAll(MemoryStore):
    """A backend that has nothing better than what the contract brings along."""

    sessions = Store.sessions
    changes = Store.changes


def note(id_: str, expires_at: float | None = None) -> Record:
    return Record(id_, {"said": id_}, id_, kind="note", expires_at=expires_at)


class Followed(RuleBasedStateMachine):
    """One mirror looks after every step, another only now and then."""

    backend: str

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.exit = AsyncExitStack()
        self.clock = ManualClock()
        self.user = f"user-{new_id()}"
        self.store = self.runner.run(self._open())
        self.always, self.sometimes = Mirror(), Mirror()

    async def _open(self) -> Store:
        make = await self.exit.enter_async_context(store_maker(self.backend))
        return make(clock=self.clock)

    def teardown(self) -> None:
        self.look_now_and_then()
        self.runner.run(self.exit.aclose())
        self.runner.close()

    @rule(session=SESSIONS, new=NEW)
    def append(self, session: str, new: list[tuple[str, int | None]]) -> None:
        self.runner.run(self.store.append(Scope(self.user, session), self._made(new)))

    @rule(session=SESSIONS, where=CHOSEN, new=NEW, if_found=st.booleans())
    def replace(
        self, session: str, where: Where, new: list[tuple[str, int | None]], if_found: bool
    ) -> None:
        scope = Scope(self.user, session)
        call = self.store.replace(scope, where, self._made(new), if_found=if_found)
        self.runner.run(call)

    @rule(session=st.none() | SESSIONS, where=CHOSEN)
    def delete(self, session: str | None, where: Where) -> None:
        self.runner.run(self.store.delete(Scope(self.user, session), where))

    @rule(session=SESSIONS)
    def mark(self, session: str) -> None:
        self.runner.run(self.store.mark(Scope(self.user, session), Where(), add={"x"}))

    @rule()
    def wait(self) -> None:
        self.clock.advance(3)

    @rule()
    def look_now_and_then(self) -> None:
        self._check(self.sometimes)

    @invariant()
    def the_one_who_always_looks_has_everything(self) -> None:
        self._check(self.always)

    def _made(self, new: list[tuple[str, int | None]]) -> list[Record]:
        now = self.clock.now
        return [note(id_, None if life is None else now + life) for id_, life in new]

    def _check(self, mirror: Mirror) -> None:
        self.runner.run(mirror.catch_up(self.store, self.user))
        found = self.runner.run(self.store.select(Scope(self.user)))
        held = mirror.held(self.clock.now)
        assert held == [(each.seq, each.session, each.id) for each in found]
        names = sorted({str(each.session) for each in found})
        assert self.runner.run(self.store.sessions(self.user)) == names


@pytest.mark.parametrize("backend", STORE_BACKENDS)
def test_a_mirror_and_the_backend_agree_after_any_steps(backend: str) -> None:
    if backend in ("postgres", "mariadb", "redis"):
        server_url(backend)  # started, or skipped, before the first example
    machine = type(f"On_{backend}", (Followed,), {"backend": backend})
    examples = 100 if backend in ("memory", "redis") else 15
    run_state_machine_as_test(
        machine, settings=settings(max_examples=examples, stateful_step_count=25)
    )


@pytest.mark.parametrize("check", STORE_CONTRACT, ids=lambda check: check.__name__[6:])
async def test_a_backend_without_a_feed_of_its_own_tells_everything(check: StoreCheck) -> None:
    store = TellsAll()
    await check(lambda **options: TellsAll(**options) if options else store)


@pytest.mark.parametrize("backend", STORE_BACKENDS)
async def test_only_what_happened_is_told(backend: str) -> None:
    async with store_maker(backend) as make:
        store, user = make(), fresh_scope(None).user
        scopes = [Scope(user, f"session {n}") for n in range(3)]
        for scope in scopes:
            await store.append(scope, [note(str(n)) for n in range(20)])
        state = (await store.changes(user)).state

        async def told(state: Any) -> Changes:
            return await store.changes(user, state)

        nothing = await told(state)
        assert (nothing.records, nothing.kept, nothing.gone) == ([], {}, frozenset())
        await store.append(scopes[0], [note("new")])
        appended = await told(nothing.state)
        assert [each.id for each in appended.records] == ["new"]
        assert appended.kept == {}
        await store.delete(scopes[1], Where(ids=frozenset({"7"})))
        deleted = await told(appended.state)
        assert deleted.records == []
        assert {name: len(kept) for name, kept in deleted.kept.items()} == {"session 1": 19}
        await store.replace(scopes[2], Where(ids=frozenset({"3"})), [note("3")], if_found=True)
        await store.append(scopes[2], [note("more")])
        replaced = await told(deleted.state)
        assert [each.id for each in replaced.records] == ["3", "more"]
        assert {name: len(kept) for name, kept in replaced.kept.items()} == {"session 2": 21}
        await store.replace(scopes[2], Where(ids=frozenset({"no"})), [note("no")], if_found=True)
        nothing = await told(replaced.state)
        assert (nothing.records, nothing.kept, nothing.gone) == ([], {}, frozenset())
        both = await told(state)  # an old state is as good
        assert [each.id for each in both.records] == ["new", "3", "more"]
        assert {*both.kept} == {"session 1", "session 2"}


@pytest.mark.parametrize("backend", STORE_BACKENDS)
async def test_changes_of_very_many_sessions_are_told(backend: str) -> None:
    async with store_maker(backend) as make:
        store, user, mirror = make(), fresh_scope(None).user, Mirror()
        scopes = [Scope(user, f"session {n}") for n in range(230)]
        for scope in scopes:
            await store.append(scope, [note("a")])
        assert len((await mirror.catch_up(store, user)).records) == 230
        for scope in scopes:
            await store.append(scope, [note("b")])
        assert len((await mirror.catch_up(store, user)).records) == 230
        await store.delete(Scope(user), Where(ids=frozenset({"a"})))
        assert len((await mirror.catch_up(store, user)).kept) == 230
        assert len(mirror.held()) == 230
        assert len(await store.sessions(user)) == 230


async def _check_corrupt_is_told_of_once(store: Store, scope: Scope) -> None:
    mirror = Mirror()
    with capture(store.events, "record_corrupt") as events:
        first = await mirror.catch_up(store, scope.user)
        assert [each.id for each in first.records] == ["good"]
        await mirror.catch_up(store, scope.user)
        await store.append(scope, [note("later")])
        later = await mirror.catch_up(store, scope.user)
        assert [each.id for each in later.records] == ["later"]
    assert [(each.name, each.data["id"]) for each in events] == [("record_corrupt", "bad")]


@pytest.mark.parametrize("backend", SQL_STORE_BACKENDS)
async def test_a_broken_row_is_reported_and_not_read_again(backend: str, tmp_path: str) -> None:
    engine = create_async_engine(sql_url(backend, tmp_path))
    store, scope = SQLStore(engine), fresh_scope()
    await store.append(scope, [note("good"), note("bad")])
    async with engine.begin() as connection:
        this = (table.c.user_id == scope.user, table.c.id == "bad")
        await connection.execute(update(table).where(*this).values(value="{"))
    await _check_corrupt_is_told_of_once(store, scope)
    await engine.dispose()


async def test_a_broken_redis_value_is_reported_and_not_read_again() -> None:
    client = Redis.from_url(server_url("redis"))
    store, scope = RedisStore(client), fresh_scope()
    await store.append(scope, [note("good"), note("bad")])
    key = f"user:{{{scope.user}}}:session:{scope.session}:records"
    await client.hset(key, "bad", b"note\0{")
    await _check_corrupt_is_told_of_once(store, scope)
    await client.aclose()
