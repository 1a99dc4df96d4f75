"""The rows of sessions: databases of the first release, what is left of users, and rare races."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from tempfile import TemporaryDirectory

import pytest
from sqlalchemy import inspect, select, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession, create_async_engine

from memoryspace import Record, Scope, SQLStore, Where
from memoryspace.message import new_id
from memoryspace.store.sql.schema import metadata, sessions
from memoryspace.testing import ManualClock, fresh_scope
from memoryspace.testing.store_tools import Mirror

from backends import sql_url

every_backend = pytest.mark.parametrize("backend", ["sqlite", "postgres", "mariadb"])
every_server = pytest.mark.parametrize("backend", ["postgres", "mariadb"])


def note(id_: str, expires_at: float | None = None) -> Record:
    return Record(id_, {"said": id_}, id_, kind="note", expires_at=expires_at)


def one(id_: str) -> Where:
    return Where(ids=frozenset({id_}))


@asynccontextmanager
async def engine_on(backend: str) -> AsyncIterator[AsyncEngine]:
    with TemporaryDirectory() as folder:
        engine = create_async_engine(sql_url(backend, folder))
        yield engine
        await engine.dispose()


@asynccontextmanager
async def database_of_the_first_release(backend: str) -> AsyncIterator[AsyncEngine]:
    """A database as it was before sessions had a number that changes, with a record in it."""
    async with engine_on(backend) as engine:
        fresh = engine
        if backend != "sqlite":
            name = f"old_{new_id().lower()}"
            async with engine.connect() as connection:
                await connection.execution_options(isolation_level="AUTOCOMMIT")
                await connection.execute(text(f"CREATE DATABASE {name}"))
            fresh = create_async_engine(engine.url.set(database=name))
        async with fresh.begin() as connection:
            await connection.run_sync(metadata.create_all)
            await connection.execute(text("ALTER TABLE memoryspace_session DROP COLUMN changed"))
            await _add_as_the_first_release(connection, with_row=backend != "sqlite")
        yield fresh
        await fresh.dispose()


async def _add_as_the_first_release(connection: AsyncConnection, *, with_row: bool) -> None:
    index = "`index`" if connection.dialect.name == "mysql" else '"index"'
    await connection.execute(text(
        f"INSERT INTO memoryspace_record (user_id, session_id, id, {index}, kind, marks,"  # noqa: S608  # a word of two
        " created_at, importance, pinned, value)"
        " VALUES ('Ann', 'one', 'old', 0, 'note', '', 0, 0.5, 0, '{}')"
    ))  # fmt: skip
    if with_row:
        await connection.execute(text("INSERT INTO memoryspace_session VALUES ('Ann', 'one', 1)"))


async def _rows_of(engine: AsyncEngine, user: str) -> int:
    async with engine.connect() as connection:
        query = select(sessions.c.session_id).where(sessions.c.user_id == user)
        return len((await connection.execute(query)).all())


async def _check_it_works(store: SQLStore) -> None:
    mirror, scope = Mirror(), Scope("Ann", "one")
    await mirror.catch_up(store, "Ann")
    assert [id_ for _, _, id_ in mirror.held()] == ["old"]
    await store.append(scope, [note("new")])
    assert [each.id for each in (await mirror.catch_up(store, "Ann")).records] == ["new"]
    await store.delete(scope, one("old"))
    assert [*(await mirror.catch_up(store, "Ann")).kept["one"]] == ["new"]


@every_backend
async def test_a_database_of_the_first_release_goes_on_working(backend: str) -> None:
    async with database_of_the_first_release(backend) as engine:
        await _check_it_works(SQLStore(engine))


@every_backend
async def test_a_host_may_be_the_first_to_open_an_old_database(backend: str) -> None:
    async with database_of_the_first_release(backend) as engine, AsyncSession(engine) as session:
        if backend != "mariadb":  # it commits before it changes a table, so not for a host
            await session.execute(text("SELECT 1"))
        await _check_it_works(SQLStore(session))
        await session.commit()
        async with engine.connect() as connection:
            found = await connection.run_sync(
                lambda sync: inspect(sync).get_columns("memoryspace_session")
            )
        assert "changed" in {column["name"] for column in found}


@every_backend
async def test_many_may_meet_on_an_old_database(backend: str) -> None:
    async with database_of_the_first_release(backend) as engine:
        engines = [create_async_engine(engine.url) for _ in range(6)]
        scope = Scope("Ann", "one")
        calls = [SQLStore(each).append(scope, [note(str(n))]) for n, each in enumerate(engines)]
        await asyncio.gather(*calls)
        assert await SQLStore(engine).count(scope) == 7
        for each in engines:
            await each.dispose()


@every_server
async def test_those_of_the_first_release_may_write_beside_us(backend: str) -> None:
    async with database_of_the_first_release(backend) as engine:
        store, mirror = SQLStore(engine), Mirror()
        await mirror.catch_up(store, "Ann")
        async with engine.begin() as connection:
            await connection.execute(text(
                "INSERT INTO memoryspace_session (user_id, session_id, next_index)"
                " VALUES ('Ann', 'two', 0)"
            ))  # fmt: skip
        await store.append(Scope("Ann", "two"), [note("a")])
        await mirror.catch_up(store, "Ann")
        assert [id_ for _, _, id_ in mirror.held()] == ["old", "a"]


@every_backend
async def test_nothing_is_left_of_a_user_who_has_nothing_left(backend: str) -> None:
    async with engine_on(backend) as engine:
        clock = ManualClock()
        store, user = SQLStore(engine, clock=clock), fresh_scope(None).user
        first, second = Scope(user, "one"), Scope(user, "two")

        async def fill() -> None:
            for scope in (first, second):
                await store.append(scope, [note("a"), note("b"), note("c", clock.now + 5)])
                await store.replace(scope, one("a"), [note("a")], if_found=True)

        await fill()
        assert await _rows_of(engine, user) >= 2
        await store.delete(Scope(user))
        assert await _rows_of(engine, user) == 0
        await fill()
        await store.delete(first)
        await store.delete(second)
        assert await _rows_of(engine, user) == 0
        await fill()
        for id_ in "abc":
            await store.delete(Scope(user), one(id_))
        assert await _rows_of(engine, user) == 0
        await fill()
        for scope in (first, second):
            await store.replace(scope, Where(), [])
        assert await _rows_of(engine, user) == 0
        await fill()
        clock.advance(5)
        for scope in (first, second):
            await store.delete(scope, Where(ids=frozenset({"a", "b"})))
            await store.replace(scope, one("c"), [note("c")], if_found=True)
        assert await _rows_of(engine, user) == 0
        await store.replace(first, one("a"), [note("a")], if_found=True)
        await store.replace(first, one("a"), [])
        assert await _rows_of(engine, user) == 0


async def test_appending_to_a_file_makes_no_row_of_the_session() -> None:
    async with engine_on("sqlite") as engine:
        store, scope = SQLStore(engine), fresh_scope()
        await store.append(scope, [note("a")])
        await store.append(scope, [note("b"), note("c")])
        await store.append(scope, [note("a")])
        assert await _rows_of(engine, scope.user) == 0


@every_server
async def test_a_lower_seq_that_is_seen_later_is_not_missed(backend: str) -> None:
    """One host appends first and commits last; in between a reader looks."""
    async with engine_on(backend) as engine:
        store, user, mirror = SQLStore(engine), fresh_scope(None).user, Mirror()
        await store.append(Scope(user, "slow"), [note("first")])
        await mirror.catch_up(store, user)
        async with AsyncSession(engine) as slow:
            await slow.execute(text("SELECT 1"))
            await SQLStore(slow).append(Scope(user, "slow"), [note("low")])
            await SQLStore(slow).append(Scope(user, "new"), [note("low")])
            await store.append(Scope(user, "quick"), [note("high")])
            await mirror.catch_up(store, user)
            assert [id_ for _, _, id_ in mirror.held()] == ["first", "high"]
            await slow.commit()
        await mirror.catch_up(store, user)
        assert [id_ for _, _, id_ in mirror.held()] == ["first", "low", "low", "high"]


@every_server
async def test_a_session_that_begins_while_all_are_deleted_keeps_its_row(backend: str) -> None:
    async with engine_on(backend) as engine:
        store = SQLStore(engine)
        for _ in range(10):
            user, mirror = fresh_scope(None).user, Mirror()
            await store.append(Scope(user, "old"), [note("a")])
            await mirror.catch_up(store, user)
            new = [store.append(Scope(user, f"new {n}"), [note("a")]) for n in range(4)]
            await asyncio.gather(*new[:2], store.delete(Scope(user)), *new[2:])
            await mirror.catch_up(store, user)
            await store.append(Scope(user, "new 0"), [note("b")])
            await mirror.catch_up(store, user)
            found = await store.select(Scope(user))
            assert mirror.held() == [(each.seq, each.session, each.id) for each in found]
            assert await _rows_of(engine, user) == len({each.session for each in found})
