"""What was deleted is gone from the files, or it is said where it may still be, and until when."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from redis.asyncio import Redis
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

from memoryspace import MemoryStore, RedisStore, SpaceStore, SQLStore
from memoryspace.errors import InvalidInput, NotStarted, StoreBusy
from memoryspace.record import Record, Scope, Where
from memoryspace.service import ServiceSettings, SpaceMemoryService, SQLMemoryService
from memoryspace.service.stored import StoredMemoryService
from memoryspace.store import TellsRemains
from memoryspace.store.redis.remaining import remains_of
from memoryspace.testing import fresh_scope

import servers
from services import service_maker

WORDS = ServiceSettings(embedder=None)
SECRET = "hazelnutallergy"
PLAIN = "bicyclebell"


def files_with(folder: Path, *words: str) -> set[str]:
    """Return the names of files in a folder that hold one of some words."""
    wanted = [word.encode() for word in words]
    return {
        path.name
        for path in folder.rglob("*")
        if path.is_file() and any(each in path.read_bytes() for each in wanted)
    }


def file_url(folder: Path) -> str:
    return f"sqlite+aiosqlite:///{folder / 'memory.db'}"


async def fill(service: StoredMemoryService, user: str) -> None:
    await service.add_memory(user, [f"my {SECRET} is number {each}" for each in range(50)])
    await service.add_memory("bob", [f"my {PLAIN} is number {each}" for each in range(50)])


@contextmanager
def own_server(name: str) -> Iterator[servers.Server]:
    server = servers.start(name)
    try:
        yield server
    finally:
        server.remove()


async def test_a_sqlite_file_has_no_log_after_a_user_is_deleted_and_says_what_it_may_hold(
    tmp_path: Path,
) -> None:
    async with SQLMemoryService(file_url(tmp_path), settings=WORDS) as service:
        await fill(service, "goneuser")
        assert "memory.db-wal" in files_with(tmp_path, SECRET)
        await service.delete_memory("goneuser")
        assert (tmp_path / "memory.db-wal").stat().st_size == 0
        left = await service.verify_erasure("goneuser")
        assert left.is_complete
        assert not left.is_physical
        assert [(each.where, each.until) for each in left.remains] == [
            (f"unused parts of pages in {tmp_path / 'memory.db'}", "scrub() rewrites it")
        ]
        await service.scrub()
        assert (await service.verify_erasure("goneuser")).is_physical
        assert files_with(tmp_path, SECRET, "goneuser") == set()
        assert await service.count("bob") == 50
        await service.add_memory("bob", ["one more"])
        assert not (await service.verify_erasure("goneuser")).is_physical  # who knows what it was
    assert files_with(tmp_path, SECRET, "goneuser") == set()
    assert files_with(tmp_path, PLAIN) == {"memory.db"}


@pytest.mark.parametrize("seed", range(3))
async def test_no_copy_of_a_moved_row_survives_a_scrub(seed: int, tmp_path: Path) -> None:
    """Pages that were split and joined hold copies of rows that overwriting does not reach."""
    chance, store = random.Random(seed), SQLStore(file_url(tmp_path))
    users = [Scope("goneuser", "s"), Scope("kept", "s"), Scope("kept", "t")]
    for number in range(60):
        scope = chance.choice(users)
        word = SECRET if scope.user == "goneuser" else PLAIN
        texts = [
            word + "x" * chance.choice([1, 50, 500, 5000]) for _ in range(chance.randint(1, 9))
        ]
        new = [
            Record(f"{word}{number}.{place}", {"t": text}, text, kind="memory")
            for place, text in enumerate(texts)
        ]
        await store.append(scope, new)
        if chance.random() < 0.5:
            await store.delete(chance.choice(users), Where(limit=chance.randint(1, 12)))
    await store.delete(Scope("goneuser"))
    before = await store.select(Scope("kept"))
    await store.scrub()
    assert await store.remains() == ()
    assert files_with(tmp_path, SECRET, "goneuser") == set()
    assert await store.select(Scope("kept")) == before
    await store.close()


async def test_deleted_rows_are_overwritten_whatever_sqlite_was_built_with(tmp_path: Path) -> None:
    store = SQLStore(file_url(tmp_path))
    await store.append(Scope("goneuser", "s"), [Record("1", {"t": SECRET}, SECRET, kind="memory")])
    await store.delete(Scope("goneuser"))
    await store.remains()
    assert files_with(tmp_path, SECRET) == set()  # one row was never moved
    async with store._transactions._engine.connect() as connection:  # type: ignore[union-attr]
        raw = (await connection.get_raw_connection()).driver_connection
        assert await raw.execute_fetchall("PRAGMA secure_delete") == [(1,)]  # type: ignore[union-attr]
    await store.close()


async def test_a_log_that_somebody_reads_is_named(tmp_path: Path) -> None:
    async with SQLMemoryService(file_url(tmp_path), settings=WORDS) as service:
        await fill(service, "goneuser")
        reader = sqlite3.connect(tmp_path / "memory.db")
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM sqlite_master").fetchone()
        await service.delete_memory("goneuser")
        left = await service.verify_erasure("goneuser")
        assert left.is_complete
        assert any(each.where.endswith("memory.db-wal") for each in left.remains)
        assert "memory.db-wal" in files_with(tmp_path, SECRET)
        with pytest.raises(StoreBusy, match="try again"):
            await service.scrub()
        assert not (await service.verify_erasure("goneuser")).is_physical
        reader.close()
        await service.scrub()
        assert (await service.verify_erasure("goneuser")).is_physical
        assert files_with(tmp_path, SECRET) == set()


async def test_what_another_process_wrote_after_a_scrub_is_not_vouched_for(tmp_path: Path) -> None:
    one, two = SQLStore(file_url(tmp_path)), SQLStore(file_url(tmp_path))
    await one.append(Scope("ann", "s"), [Record("1", {}, SECRET, kind="memory")])
    await one.scrub()
    assert await one.remains() == ()
    await two.delete(Scope("ann"))
    assert await one.remains() != ()
    await one.close()
    await two.close()


async def test_a_session_that_was_handed_in_keeps_what_its_transaction_did(tmp_path: Path) -> None:
    engine = create_async_engine(file_url(tmp_path))
    async with AsyncSession(engine) as session:
        await session.begin()
        store = SQLStore(session)
        await store.append(Scope("ann", "s"), [Record("1", {}, SECRET, kind="memory")])
        [left] = await store.remains()
        assert left.until == "its transaction has ended"
        with pytest.raises(InvalidInput, match="open it on the engine"):
            await store.scrub()
        await session.rollback()
    await engine.dispose()


async def test_nothing_remains_of_what_only_ever_was_in_memory() -> None:
    for store in (MemoryStore(), SQLStore("sqlite+aiosqlite://")):
        assert isinstance(store, TellsRemains)
        await store.append(Scope("ann", "s"), [Record("1", {}, SECRET, kind="memory")])
        await store.delete(Scope("ann"))
        assert await store.remains() == ()
        await store.close()


async def test_a_folder_says_what_it_holds_until_it_is_scrubbed(tmp_path: Path) -> None:
    async with SpaceMemoryService(tmp_path, settings=WORDS) as service:
        await fill(service, "goneuser")
        await service.delete_memory("goneuser")
        left = await service.verify_erasure("goneuser")
        assert (left.is_complete, left.is_physical) == (True, False)
        assert "scrub()" in left.remains[0].until
        assert files_with(tmp_path, SECRET)
        await service.scrub()
        assert (await service.verify_erasure("goneuser")).is_physical
        assert files_with(tmp_path, SECRET, "goneuser") == set()
        await service.add_memory("bob", ["one more"])
        assert (await service.verify_erasure("goneuser")).is_physical  # nothing was freed since
        await service.delete_memory("bob")
        assert not (await service.verify_erasure("bob")).is_physical


async def test_a_folder_that_is_opened_anew_may_hold_anything(tmp_path: Path) -> None:
    async with SpaceStore(tmp_path) as store:
        await store.append(Scope("ann", "s"), [Record("1", {}, SECRET, kind="memory")])
        await store.scrub()
        await store.delete(Scope("ann"))
    async with SpaceStore(tmp_path) as store:
        assert await store.remains() != ()
        await store.scrub()
        assert await store.remains() == ()


@pytest.mark.parametrize(("backend", "log"), [("postgres", "write-ahead"), ("mariadb", "redo log")])
async def test_a_database_server_says_where_bytes_stay(
    backend: str, log: str, tmp_path: Path
) -> None:
    with own_server(backend) as server:
        if backend == "mariadb":
            servers.create_mariadb_database(server)
        async with SQLMemoryService(server.url, settings=WORDS) as service:
            await fill(service, "goneuser")
            await service.delete_memory("goneuser")
            left = await service.verify_erasure("goneuser")
            assert (left.is_complete, left.is_physical) == (True, False)
            assert any(log in each.where for each in left.remains)
            assert files_with(server.folder, SECRET)
            with pytest.raises(InvalidInput, match="can rewrite its files"):
                await service.scrub()


async def test_redis_says_where_bytes_stay_until_its_log_is_rewritten() -> None:
    with own_server("redis") as server:
        client = Redis.from_url(server.url)
        store = RedisStore(client)
        await store.append(Scope("goneuser", "s"), [Record("1", {}, SECRET, kind="memory")])
        await store.delete(Scope("goneuser"))
        assert any("append-only" in each.where for each in await store.remains())
        assert files_with(server.folder, SECRET)
        await client.bgrewriteaof()
        await _until_idle(client)
        assert not any("append-only" in each.where for each in await store.remains())
        assert files_with(server.folder, SECRET) == set()
        await client.config_set("appendonly", "no")
        await client.set("something", "else")
        [left] = await store.remains()
        assert "BGSAVE" in left.until
        await client.save()
        assert await store.remains() == ()
        await client.aclose()


async def _until_idle(client: Redis) -> None:
    for _ in range(100_000):
        said = await client.info("persistence")
        if not said["aof_rewrite_in_progress"] and not said["aof_rewrite_scheduled"]:
            return
    raise AssertionError("the log is still being rewritten")


def test_a_redis_that_does_not_tell_is_not_vouched_for() -> None:
    [left] = remains_of({})
    assert "does not say" in left.until
    started = {"aof_enabled": 1, "rdb_changes_since_last_save": 0, "aof_current_size": 9}
    rewritten = {**started, "aof_last_bgrewrite_status": "ok", "aof_last_rewrite_time_sec": 0}
    assert remains_of({**started, "aof_base_size": 9})  # it was so when it started
    assert remains_of({**rewritten, "aof_base_size": 9}) == ()
    assert remains_of({**rewritten, "aof_base_size": 9, "aof_last_bgrewrite_status": "err"})
    assert remains_of({**rewritten, "aof_base_size": 9, "aof_rewrite_in_progress": 1})
    assert remains_of({**rewritten, "aof_base_size": 8})
    assert remains_of({"aof_enabled": 0, "rdb_changes_since_last_save": 0}) == ()


@pytest.mark.parametrize("backend", ["memory", "space", "sqlite", "postgres", "mariadb", "redis"])
async def test_every_service_tells_what_remains(backend: str) -> None:
    user = fresh_scope().user
    async with service_maker(backend) as make, make() as service:
        await service.add_memory(user, ["hello"])
        await service.delete_memory(user)
        left = await service.verify_erasure(user)
        assert left
        assert isinstance(service.store, TellsRemains)
        assert left.is_physical == (backend == "memory")
        assert all(each.where and each.until for each in left.remains)


async def test_a_store_that_tells_nothing_is_not_vouched_for() -> None:
    async with service_maker("tablestore") as make, make() as service:
        left = await service.verify_erasure("ann")
        assert left.is_complete
        assert left.remains[0].until == "unknown"


async def test_a_service_that_was_not_started_scrubs_nothing(tmp_path: Path) -> None:
    with pytest.raises(NotStarted):
        await SQLMemoryService(file_url(tmp_path), settings=WORDS).scrub()
