"""Several processes on one database, and many at once on an empty one."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from memoryspace import AsyncSQLAlchemyMemory, Msg
from memoryspace.message import new_id
from worker import memory_at

from backends import SHARED_STORE_BACKENDS, server_url, sql_url

WORKER = Path(__file__).parents[1] / "support" / "worker.py"


async def run_workers(backend: str, url: str, user: str, workers: int, adds: int) -> None:
    started = [
        await asyncio.create_subprocess_exec(
            sys.executable, str(WORKER), backend, url, user, str(n * adds), str(adds),
            stderr=asyncio.subprocess.PIPE,
        )
        for n in range(workers)
    ]  # fmt: skip
    for process in started:
        _, errors = await process.communicate()
        assert process.returncode == 0, errors.decode()


@pytest.mark.parametrize("backend", SHARED_STORE_BACKENDS)
async def test_four_processes_lose_nothing_and_keep_their_order(
    backend: str, tmp_path: Path
) -> None:
    url = server_url("redis") if backend == "redis" else sql_url(backend, tmp_path)
    user = f"user-{new_id()}"
    await run_workers(backend, url, user, workers=4, adds=50)
    async with memory_at(backend, url, user) as memory:
        said = [int(str(msg.content)) for msg in await memory.get_memory()]
        assert sorted(said) == list(range(200))
        for first in range(0, 200, 50):
            own = [number for number in said if first <= number < first + 50]
            assert own == sorted(own)
            assert len(await memory.get_memory(mark=f"from {first}")) == 50


@pytest.mark.parametrize("backend", ["sqlite", "postgres", "mariadb"])
async def test_places_in_a_session_have_no_gaps(backend: str, tmp_path: Path) -> None:
    engine = create_async_engine(sql_url(backend, tmp_path))
    user = f"user-{new_id()}"
    memories = [AsyncSQLAlchemyMemory(engine, "session", user) for _ in range(4)]
    messages = [Msg("Ann", str(n), "user") for n in range(100)]
    both = [(n % 4, msg) for n, msg in enumerate([*messages, *messages])]
    await asyncio.gather(*(memories[n].add(msg) for n, msg in both))
    table = memories[0].MessageTable
    query = select(table.index).where(table.session_id == "session", table.user_id == user)
    async with memories[0] as memory:
        places = (await memory.session.execute(query.order_by(table.index))).scalars().all()
    await engine.dispose()
    assert list(places) == list(range(100))


@pytest.mark.parametrize("backend", ["sqlite", "postgres", "mariadb"])
async def test_eight_processes_may_meet_on_an_empty_database(backend: str, tmp_path: Path) -> None:
    url = await _empty_database(backend, tmp_path)
    await run_workers(backend, url, "user", workers=8, adds=3)
    async with memory_at(backend, url, "user") as memory:
        assert await memory.size() == 24


@pytest.mark.parametrize("backend", ["sqlite", "postgres", "mariadb"])
async def test_eight_engines_may_meet_on_an_empty_database(backend: str, tmp_path: Path) -> None:
    url = await _empty_database(backend, tmp_path)
    engines = [create_async_engine(url) for _ in range(8)]
    messages = [Msg("Ann", str(n), "user") for n in range(8)]
    calls = [AsyncSQLAlchemyMemory(e).add(m) for e, m in zip(engines, messages, strict=True)]
    await asyncio.gather(*calls)
    assert await AsyncSQLAlchemyMemory(engines[0]).size() == 8
    for engine in engines:
        await engine.dispose()


async def _empty_database(backend: str, folder: Path) -> str:
    url = sql_url(backend, folder)
    if backend == "sqlite":
        return url
    name = f"empty_{new_id().lower()}"
    options = {"isolation_level": "AUTOCOMMIT"}
    engine: AsyncEngine = create_async_engine(url, **options)
    async with engine.connect() as connection:
        await connection.execute(text(f"CREATE DATABASE {name}"))
    await engine.dispose()
    return engine.url.set(database=name).render_as_string(hide_password=False)
