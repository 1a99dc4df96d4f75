"""What a caller passes in stays the caller's: transactions, sessions, engines, clients, pools."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from redis.asyncio import ConnectionPool, Redis
from sqlalchemy import Column, Integer, MetaData, String, Table, func, insert, select
from sqlalchemy.ext.asyncio import (
    AsyncEngine,
    AsyncSession,
    async_sessionmaker,
    create_async_engine,
)
from sqlalchemy.pool import AsyncAdaptedQueuePool

from memoryspace import AsyncSQLAlchemyMemory, Msg, RedisMemory, SQLSession
from memoryspace.errors import NotSerializable
from memoryspace.message import new_id

from backends import server_url, sql_url

STORE_BACKENDS = ["sqlite", "postgres", "mariadb"]
everyone = pytest.mark.parametrize("backend", STORE_BACKENDS)


@asynccontextmanager
async def engine_and_table(
    backend: str, **options: object
) -> AsyncIterator[tuple[AsyncEngine, Table]]:
    """Yield an engine and a table of the caller's own."""
    with TemporaryDirectory() as folder:
        engine = create_async_engine(sql_url(backend, folder), **options)
        table = Table(
            f"own_{new_id().lower()}",
            MetaData(),
            Column("id", Integer, primary_key=True),
            Column("x", String(9)),
        )
        async with engine.begin() as connection:
            await connection.run_sync(table.metadata.create_all)
        yield engine, table
        async with engine.begin() as connection:
            await connection.run_sync(table.metadata.drop_all)
        await engine.dispose()


async def rows(engine: AsyncEngine, table: Table) -> int:
    async with engine.connect() as connection:
        return (await connection.execute(select(func.count()).select_from(table))).scalar_one()


def memory_of(bind: AsyncEngine | AsyncSession, user: str) -> AsyncSQLAlchemyMemory:
    return AsyncSQLAlchemyMemory(bind, "session", user)


def msg(text: str = "hello") -> Msg:
    return Msg("Ann", text, "user")


@everyone
async def test_a_callers_open_transaction_is_joined_and_left_to_the_caller(backend: str) -> None:
    async with engine_and_table(backend) as (engine, table):
        user = f"user-{new_id()}"
        await memory_of(engine, user).add(msg("before"))
        async with AsyncSession(engine) as session:
            await session.execute(insert(table), {"x": "mine"})
            memory = memory_of(session, user)
            await memory.add(msg("inside"), marks="x")
            await memory.update_compressed_summary("inside")
            assert await memory.size() == 2
            assert session.in_transaction()
            await session.rollback()
            assert await memory.size() == 1
            assert [m.content for m in await memory.get_memory()] == ["before"]
        assert await rows(engine, table) == 0
        async with AsyncSession(engine) as session:
            await session.execute(insert(table), {"x": "mine"})
            await memory_of(session, user).add(msg("kept"))
            await session.commit()
        assert await rows(engine, table) == 1
        assert [m.content for m in await memory_of(engine, user).get_memory()] == ["before", "kept"]


@everyone
async def test_tables_can_be_created_inside_a_callers_transaction(
    backend: str, tmp_path: Path
) -> None:
    async with engine_and_table(backend) as (engine, table):
        fresh = create_async_engine(engine.url)  # one that has not seen our tables
        async with AsyncSession(fresh) as session:
            await session.execute(insert(table), {"x": "mine"})
            await memory_of(session, f"user-{new_id()}").add(msg())
            await session.rollback()
        await fresh.dispose()
        assert await rows(engine, table) == 0


@everyone
async def test_without_an_open_transaction_a_message_is_safe_at_once(backend: str) -> None:
    async with engine_and_table(backend) as (engine, _):
        user = f"user-{new_id()}"
        async with AsyncSession(engine) as session:
            memory = memory_of(session, user)
            await memory.add(msg())
            assert not session.in_transaction()
            assert await memory_of(engine, user).size() == 1
            await session.rollback()
        assert await memory_of(engine, user).size() == 1


@everyone
async def test_a_failed_call_does_not_spoil_the_callers_transaction(backend: str) -> None:
    async with engine_and_table(backend) as (engine, table):
        async with AsyncSession(engine) as session:
            await session.execute(insert(table), {"x": "mine"})
            memory = memory_of(session, f"user-{new_id()}")
            with pytest.raises(NotSerializable, match="cannot be written as JSON"):
                await memory.add(Msg("Ann", "x", "user", {"object": object()}))
            await memory.add(msg())
            await session.commit()
        assert await rows(engine, table) == 1
        assert await memory.size() == 1


@everyone
async def test_one_session_can_be_used_by_many_tasks_at_once(backend: str) -> None:
    async with engine_and_table(backend) as (engine, table):
        for begun in (False, True):
            user = f"user-{new_id()}"
            async with AsyncSession(engine) as session:
                if begun:
                    await session.execute(insert(table), {"x": "mine"})
                memory = memory_of(session, user)
                await asyncio.gather(*(memory.add(msg(str(n)), marks="x") for n in range(20)))
                await session.commit()
            assert await memory_of(engine, user).size() == 20


@everyone
async def test_close_leaves_session_and_engine_usable(backend: str) -> None:
    async with engine_and_table(backend) as (engine, table):
        async with AsyncSession(engine) as session:
            await session.execute(insert(table), {"x": "mine"})
            async with memory_of(session, f"user-{new_id()}") as memory:
                await memory.add(msg())
            assert session.in_transaction()
            assert await memory.size() == 1
            await session.commit()
        async with memory_of(engine, f"user-{new_id()}") as memory:
            await memory.session.execute(select(table))
        await memory.add(msg())
        assert await rows(engine, table) == 1


@everyone
async def test_no_call_keeps_a_pooled_connection(backend: str) -> None:
    async with engine_and_table(
        backend, poolclass=AsyncAdaptedQueuePool, pool_size=1, max_overflow=0, pool_timeout=5
    ) as (engine, _):
        memories = [memory_of(engine, f"user-{new_id()}") for _ in range(3)]
        sessions = async_sessionmaker(engine)
        memories += [memory_of(sessions(), f"user-{new_id()}") for _ in range(3)]
        for memory in memories:
            await memory.add(msg(), marks="x")
            await memory.get_memory()
            await memory.update_messages_mark("y")
            await memory.size()
            assert engine.pool.checkedout() == 0  # type: ignore[attr-defined]  # of a queue pool
        await asyncio.gather(*(memory.get_memory() for memory in memories * 5))
        assert engine.pool.checkedout() == 0  # type: ignore[attr-defined]  # of a queue pool


async def test_only_engines_and_sessions_are_taken() -> None:
    for wrong in ("sqlite://", None, 1):
        with pytest.raises(ValueError, match="AsyncEngine or an AsyncSession"):
            AsyncSQLAlchemyMemory(wrong)  # type: ignore[arg-type]  # wrong on purpose
        with pytest.raises(ValueError, match="AsyncEngine or an AsyncSession"):
            SQLSession(wrong)  # type: ignore[arg-type]  # wrong on purpose


@pytest.mark.parametrize("decoded", [True, False])
async def test_a_redis_pool_that_was_passed_in_stays_open(decoded: bool) -> None:
    pool = ConnectionPool.from_url(server_url("redis"), decode_responses=decoded, max_connections=3)
    user = f"user-{new_id()}"
    async with RedisMemory("session", user, connection_pool=pool) as memory:
        await memory.add(msg("长"), marks="压缩")
    async with RedisMemory("session", user, connection_pool=pool) as again:
        assert [m.content for m in await again.get_memory(mark="压缩")] == ["长"]
        await again.get_client().aclose()
    async with Redis(connection_pool=pool) as client:
        assert await client.ping()
    await pool.disconnect()


async def test_a_redis_client_that_was_passed_in_stays_open() -> None:
    client = Redis.from_url(server_url("redis"))
    async with RedisMemory("session", f"user-{new_id()}", client=client) as memory:
        await memory.add(msg())
        assert memory.get_client() is client
    assert await client.ping()
    assert await memory.size() == 1
    await client.aclose()
    with pytest.raises(ValueError, match="pass it without a pool"):
        RedisMemory(client=client, decode_responses=True)


async def test_a_small_redis_pool_makes_calls_wait_not_fail() -> None:
    pool = ConnectionPool.from_url(server_url("redis"), max_connections=2)
    user = f"user-{new_id()}"
    memories = [RedisMemory("session", user, connection_pool=pool) for _ in range(50)]
    await asyncio.gather(*(memory.add(msg()) for memory in memories))
    assert await memories[0].size() == 50
    await pool.disconnect()
