"""Transactions under strain: cancelled calls, odd engines, snapshots, deadlocks, missing tables."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from sqlalchemy import event, inspect, select, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine

from memoryspace import AsyncSQLAlchemyMemory, Msg, Record, SQLStore, Where
from memoryspace.errors import InvalidInput, StoreBusy, StoreError
from memoryspace.message import new_id
from memoryspace.store.sql.schema import records as table
from memoryspace.testing import fresh_scope

from backends import sql_url

STORE_BACKENDS = ["sqlite", "postgres", "mariadb"]
SERVERS = ["postgres", "mariadb"]
every_backend = pytest.mark.parametrize("backend", STORE_BACKENDS)
every_server = pytest.mark.parametrize("backend", SERVERS)


@asynccontextmanager
async def engine_on(backend: str, **options: Any) -> AsyncIterator[AsyncEngine]:
    with TemporaryDirectory() as folder:
        engine = create_async_engine(sql_url(backend, folder), **options)
        yield engine
        await engine.dispose()


def memory_of(bind: AsyncEngine | AsyncSession, session: str, user: str) -> AsyncSQLAlchemyMemory:
    return AsyncSQLAlchemyMemory(bind, session, user)


def say(text: str = "hello") -> Msg:
    return Msg("Ann", text, "user")


def some(count: int) -> list[Record]:
    messages = [say(str(n)) for n in range(count)]
    return [Record(msg.id, msg, str(msg.content)) for msg in messages]


@pytest.mark.parametrize("backend", ["sqlite-memory", *STORE_BACKENDS])
async def test_cancelled_calls_lose_nothing_and_leave_no_lock(backend: str) -> None:
    async with engine_on(backend) as engine:
        memory = memory_of(engine, "session", f"user-{new_id()}")
        kept = [say(str(n)) for n in range(500)]
        await memory.add(kept)
        acknowledged = []
        for step in range(30):
            msg = say(f"step {step}")
            task = asyncio.create_task(memory.add(msg) if step % 2 else memory.get_memory())
            for _ in range(step):
                await asyncio.sleep(0)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
                acknowledged += [msg] if step % 2 else []
        found = {msg.id for msg in await memory.get_memory()}
        assert found >= {msg.id for msg in [*kept, *acknowledged]}
        await memory.add(say())


@every_backend
async def test_many_new_sessions_may_begin_at_once(backend: str) -> None:
    async with engine_on(backend) as engine:
        user = f"user-{new_id()}"
        memories = [memory_of(engine, f"session {n}", user) for n in range(100)]
        for start in range(0, 100, 10):
            await asyncio.gather(*(memory.add(say()) for memory in memories[start : start + 10]))
        assert await SQLStore(engine).count(fresh_scope(None)) == 0
        assert [await memory.size() for memory in memories] == [1] * 100


@every_server
async def test_an_engine_in_autocommit_mode_is_still_atomic(backend: str) -> None:
    async with engine_on(backend, isolation_level="AUTOCOMMIT") as engine:
        store, scope = SQLStore(engine), fresh_scope()
        await store.append(scope, some(5))
        marks = [f"mark {n}" for n in range(20)]
        await asyncio.gather(*(store.mark(scope, Where(), add={mark}) for mark in marks))
        assert all(record.marks == set(marks) for record in await store.select(scope))
        async with AsyncSession(engine) as session:
            await session.execute(text("SELECT 1"))
            with pytest.raises(InvalidInput, match="autocommit mode"):
                await SQLStore(session).append(scope, some(1))


@pytest.mark.parametrize("begin", ["BEGIN", "BEGIN IMMEDIATE"])
async def test_sqlite_engines_that_begin_their_own_transactions_work(
    begin: str, tmp_path: Path
) -> None:
    engine = create_async_engine(sql_url("sqlite", tmp_path))

    @event.listens_for(engine.sync_engine, "connect")
    def leave_it_to_us(connection: Any, _: Any) -> None:
        connection.isolation_level = None

    @event.listens_for(engine.sync_engine, "begin")
    def begin_ourselves(connection: Any) -> None:
        connection.exec_driver_sql(begin)

    memory = memory_of(engine, "session", "user")
    await asyncio.gather(*(memory.add(say(), marks="x") for _ in range(20)))
    assert await memory.update_messages_mark("y", "x") == 20
    await memory.close()
    await engine.dispose()


async def test_a_sqlite_file_is_complete_once_its_memory_is_closed(tmp_path: Path) -> None:
    engine = create_async_engine(sql_url("sqlite", tmp_path))
    async with memory_of(engine, "session", "user") as memory:
        await memory.add([say() for _ in range(20)])
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "memory.db").write_bytes((tmp_path / "memory.db").read_bytes())
    copied = create_async_engine(sql_url("sqlite", tmp_path / "copy"))
    assert await memory_of(copied, "session", "user").size() == 20
    await copied.dispose()
    await engine.dispose()


@every_backend
async def test_dropped_tables_are_made_again(backend: str) -> None:
    async with engine_on(backend) as engine, _fresh_database(backend, engine) as fresh:
        memory = memory_of(fresh, "session", "user")
        await memory.add(say())
        async with fresh.begin() as connection:
            await connection.run_sync(table.metadata.drop_all)
        await memory.add(say("anew"))
        assert [msg.content for msg in await memory.get_memory()] == ["anew"]


@every_backend
async def test_tables_can_be_made_at_the_start(backend: str) -> None:
    async with engine_on(backend) as engine, _fresh_database(backend, engine) as fresh:
        await SQLStore(fresh).create_tables()
        async with fresh.connect() as connection:
            names = await connection.run_sync(lambda sync: inspect(sync).get_table_names())
        assert table.name in names


async def test_guests_may_all_be_the_first_to_need_the_tables() -> None:
    """PostgreSQL makes tables inside a transaction, so no second connection is asked for."""
    async with engine_on("postgres") as engine, _fresh_database("postgres", engine) as fresh:

        async def request(number: int) -> None:
            async with AsyncSession(fresh) as session:
                await session.execute(text("SELECT 1"))
                await memory_of(session, "session", "user").add(say(str(number)))
                await session.commit()

        await asyncio.gather(*(request(number) for number in range(30)))
        assert await memory_of(fresh, "session", "user").size() == 30


async def test_tables_that_a_host_undoes_are_made_again() -> None:
    async with engine_on("postgres") as engine, _fresh_database("postgres", engine) as fresh:
        for _ in range(2):
            async with AsyncSession(fresh) as session:
                await session.execute(text("SELECT 1"))
                memory = memory_of(session, "session", "user")
                await memory.add(say())
                assert await memory.size() == 1
                await session.rollback()
        memory = memory_of(fresh, "session", "user")
        await memory.add(say())
        assert await memory.size() == 1


@every_server
async def test_marks_set_from_an_old_snapshot_are_kept(backend: str) -> None:
    async with engine_on(backend) as engine:
        user, msg = f"user-{new_id()}", say()
        own = memory_of(engine, "session", user)
        await own.add(msg)
        async with AsyncSession(engine) as session:
            await session.execute(select(table.c.seq).limit(1))  # the snapshot
            await own.update_messages_mark("other", msg_ids=[msg.id])
            guest = memory_of(session, "session", user)
            assert await guest.update_messages_mark("guest", msg_ids=[msg.id]) == 1
            await guest.add(msg, marks="again")
            await session.commit()
        for mark in ("other", "guest", "again"):
            assert [m.id for m in await own.get_memory(mark=mark)] == [msg.id]


async def test_a_deadlock_that_undoes_the_host_is_not_hidden_from_it() -> None:
    """MySQL rolls back the whole transaction; a commit afterwards must not seem to succeed."""
    async with engine_on("mariadb") as engine:
        user = f"user-{new_id()}"
        for session in ("one", "two"):
            await memory_of(engine, session, user).add(say())
        async with AsyncSession(engine) as a, AsyncSession(engine) as b:
            for session in (a, b):
                await session.execute(text("SELECT 1"))
            await memory_of(a, "one", user).add(say("host a"))
            await memory_of(b, "two", user).add(say("host b"))
            crossed = await asyncio.gather(
                memory_of(a, "two", user).add(say("crossed")),
                memory_of(b, "one", user).add(say("crossed")),
                return_exceptions=True,
            )
            outcomes = dict(zip((a, b), crossed, strict=True))
            for session, outcome in outcomes.items():
                if outcome is None:
                    await session.commit()
                    continue
                assert isinstance(outcome, StoreBusy)
                assert "rolled back your transaction" in str(outcome)
                with pytest.raises(SQLAlchemyError):
                    await session.commit()
        assert sorted(map(type, crossed), key=str) == sorted([type(None), StoreBusy], key=str)


async def test_a_failing_read_does_not_spoil_the_hosts_transaction() -> None:
    async with engine_on("postgres") as engine:
        user = f"user-{new_id()}"
        scope = fresh_scope()
        async with AsyncSession(engine) as session:
            await memory_of(engine, "session", user).size()
            await session.execute(text("SELECT 1"))
            guest = memory_of(session, "session", user)
            await guest.add(say())
            with pytest.raises(StoreError):
                await SQLStore(session, clock=lambda: "no time").count(scope)  # type: ignore[arg-type,return-value]  # wrong on purpose
            await session.commit()
        assert await memory_of(engine, "session", user).size() == 1


@every_backend
async def test_errors_show_nothing_of_what_users_said(backend: str) -> None:
    async with engine_on(backend) as engine:
        store = SQLStore(engine)
        await store.create_tables()
        secret = Msg("Ann", "my password is hunter2", "user")
        wrong = Record(secret.id, secret, origin="no origin")  # type: ignore[arg-type]  # on purpose
        with pytest.raises(Exception, match=r".") as caught:
            await store.append(fresh_scope(), [wrong])
        assert "hunter2" not in str(caught.value)

        async def broken(on: Any) -> None:
            await on.execute(
                text("INSERT INTO no_such_table VALUES (:secret)"), {"secret": "hunter2"}
            )

        with pytest.raises(StoreError) as failed:
            await store._transactions.write(broken)
        assert "hunter2" not in str(failed.value)
        assert "hunter2" not in str(failed.value.__cause__)


def test_a_url_is_refused_without_being_shown() -> None:
    with pytest.raises(ValueError, match="AsyncEngine") as caught:
        AsyncSQLAlchemyMemory("postgresql+asyncpg://bob:hunter2@host/db")  # type: ignore[arg-type]  # on purpose
    assert "hunter2" not in str(caught.value)


@every_backend
async def test_concurrent_limited_deletes_take_different_records(backend: str) -> None:
    async with engine_on(backend) as engine:
        store, scope = SQLStore(engine), fresh_scope()
        await store.append(scope, some(30))
        taken = await asyncio.gather(*(store.delete(scope, Where(limit=1)) for _ in range(30)))
        assert all(len(each) == 1 for each in taken)
        assert len({each[0] for each in taken}) == 30
        assert await store.count(scope) == 0


@every_backend
async def test_concurrent_replaces_of_a_new_session_leave_the_last(backend: str) -> None:
    async with engine_on(backend) as engine:
        store = SQLStore(engine)
        for _ in range(5):
            scope, one = fresh_scope(), Where(ids=frozenset({"one"}))
            new = [Record("one", f"version {n}", kind="note") for n in range(4)]
            done = await asyncio.gather(*(store.replace(scope, one, [each]) for each in new))
            assert done == [["one"]] * 4
            assert await store.count(scope) == 1


@every_backend
async def test_a_message_may_carry_very_many_marks(backend: str) -> None:
    async with engine_on(backend) as engine:
        memory = memory_of(engine, "session", f"user-{new_id()}")
        marks = [f"{new_id()}-{n}" * 4 for n in range(300)]
        await memory.add(say(), marks=marks)
        assert len(await memory.get_memory(mark=marks[-1])) == 1
        with pytest.raises(InvalidInput, match="at most 100 marks"):
            await memory.delete_by_mark(marks)


@every_server
async def test_deleting_everything_leaves_no_trace_of_the_user(backend: str) -> None:
    async with engine_on(backend) as engine:
        store, scope = SQLStore(engine), fresh_scope()
        await store.append(scope, some(3))
        await store.delete(scope)
        async with engine.connect() as connection:
            for name in ("memoryspace_record", "memoryspace_session"):
                query = text(f"SELECT count(*) FROM {name} WHERE user_id = :user")  # noqa: S608  # a name above
                assert (await connection.execute(query, {"user": scope.user})).scalar_one() == 0
        await store.append(scope, some(2))
        assert await store.count(scope) == 2


@asynccontextmanager
async def _fresh_database(backend: str, engine: AsyncEngine) -> AsyncIterator[AsyncEngine]:
    """Yield an engine on a database that has never seen our tables."""
    if backend == "sqlite":
        yield engine
        return
    name = f"fresh_{new_id().lower()}"
    async with engine.connect() as connection:
        await connection.execution_options(isolation_level="AUTOCOMMIT")
        await connection.execute(text(f"CREATE DATABASE {name}"))
    fresh = create_async_engine(engine.url.set(database=name))
    yield fresh
    await fresh.dispose()
