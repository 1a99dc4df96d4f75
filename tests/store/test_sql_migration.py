"""Databases of the release before: opened, used, and migrated while they are used."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from sqlalchemy import inspect, text
from sqlalchemy.exc import SAWarning
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from former_tables import statements
from memoryspace import Record, Scope, SQLStore, Where
from memoryspace.errors import InvalidInput, SchemaTooNew, StoreBusy, StoreError
from memoryspace.message import new_id
from memoryspace.store.sql import Step, migrate
from memoryspace.store.sql.migration import MIGRATION_LOCK
from memoryspace.testing.store_vectors_contract import everything, numbered, stored

from backends import sql_url

SPACE = "model/3"
every_backend = pytest.mark.parametrize("backend", ["sqlite", "postgres", "mariadb"])


def note(id_: str) -> Record:
    return Record(id_, {"said": id_}, id_, kind="note")


@asynccontextmanager
async def database(backend: str, *, former: bool = True) -> AsyncIterator[AsyncEngine]:
    """A database of its own; with the tables of the former release and a record in each, or new."""
    with TemporaryDirectory() as folder:
        engine = create_async_engine(sql_url(backend, folder))
        fresh = engine
        if backend != "sqlite":
            name = f"former_{new_id().lower()}"
            async with engine.connect() as on:
                await on.execution_options(isolation_level="AUTOCOMMIT")
                await on.execute(text(f"CREATE DATABASE {name}"))
            await engine.dispose()
            fresh = create_async_engine(engine.url.set(database=name))
        if former:
            await _make_as_the_former_release(fresh, backend)
        yield fresh
        await fresh.dispose()


async def _make_as_the_former_release(engine: AsyncEngine, backend: str) -> None:
    async with engine.begin() as on:
        if backend == "postgres":
            await on.execute(text("CREATE EXTENSION IF NOT EXISTS vector"))
        for statement in statements(backend):
            await on.exec_driver_sql(statement)
        index = "`index`" if backend == "mariadb" else '"index"'
        values = "'Ann', 'one', 'old', 0, 'note', '', 0, 0.5, 0, '{}'"
        await on.exec_driver_sql(
            f"INSERT INTO memoryspace_record (user_id, session_id, id, {index}, kind, marks, "  # noqa: S608
            f"created_at, importance, pinned, value) VALUES ({values})"
        )
        seq = (await on.execute(text("SELECT seq FROM memoryspace_record"))).scalar_one()
        data = "x'6f6c64'" if backend != "postgres" else "'\\x6f6c64'"
        await on.exec_driver_sql(f"INSERT INTO memoryspace_vector (seq, space, user_id, vector) "  # noqa: S608
                                 f"VALUES ({seq}, '{SPACE}', 'Ann', {data})")  # fmt: skip
        if backend != "sqlite":
            await on.exec_driver_sql(
                "INSERT INTO memoryspace_session (user_id, session_id, next_index) "
                "VALUES ('Ann', 'one', 1)"
            )


async def version_in(engine: AsyncEngine) -> int:
    async with engine.connect() as on:
        query = text("SELECT version FROM memoryspace_schema WHERE part = 'store'")
        return int((await on.execute(query)).scalar_one())


async def check_everything_works(store: SQLStore) -> None:
    """Read the record and vector of the former release, and run the calls that name keys."""
    scope = Scope("Ann", "one")
    assert [each.id for each in await store.select(scope)] == ["old"]
    assert list((await everything(store, "Ann")).values()) == [b"old"]
    places = await stored(store, scope, [note(new_id())])
    for _ in "twice":
        assert await store.put_vectors("Ann", SPACE, numbered(places)) == 1
    assert len(await everything(store, "Ann")) == 2
    assert len(await store.select(scope, Where(limit=1, skip=1))) == 1
    await store.delete(scope, Where(ids=frozenset({places[0].id})))
    assert len(await everything(store, "Ann")) == 1


async def keys_of(engine: AsyncEngine) -> dict[str, Any]:
    """Return what a migrated database must share with a new one: keys, references, indexes."""

    def read(on: Any) -> dict[str, Any]:
        found = inspect(on)
        return {
            table: (
                found.get_pk_constraint(table)["constrained_columns"],
                sorted(
                    (each["constrained_columns"], each["referred_table"], each["referred_columns"])
                    for each in found.get_foreign_keys(table)
                ),
                sorted(
                    (str(each["name"]), each["column_names"]) for each in found.get_indexes(table)
                ),
                str(next(
                    each["type"] for each in found.get_columns(table) if each["name"] == "user_id"
                )).partition("(")[0],
            )
            for table in found.get_table_names()
            if table != "memoryspace_schema"
        }  # fmt: skip

    with warnings.catch_warnings():  # SQLAlchemy does not know the type of pgvector's columns
        warnings.simplefilter("ignore", SAWarning)
        async with engine.connect() as on:
            return await on.run_sync(read)


@every_backend
async def test_a_database_of_the_former_release_goes_on_working(backend: str) -> None:
    async with database(backend) as engine:
        await check_everything_works(SQLStore(engine))


async def test_a_sqlite_file_is_brought_up_to_date_by_opening_it() -> None:
    async with database("sqlite") as engine, database("sqlite", former=False) as new:
        await SQLStore(engine).create_tables()
        await SQLStore(new).create_tables()
        assert await version_in(engine) == await version_in(new) == 2
        assert await keys_of(engine) == await keys_of(new)


@pytest.mark.parametrize("backend", ["postgres", "mariadb"])
async def test_a_migrated_server_is_like_a_new_one(backend: str) -> None:
    async with database(backend) as engine, database(backend, former=False) as new:
        await SQLStore(engine).create_tables()
        assert await version_in(engine) == 1
        steps: list[Step] = []
        assert await migrate(engine, progress=steps.append) == 2
        assert [each.done for each in steps] == list(range(steps[0].total))
        await SQLStore(new).create_tables()
        assert await version_in(engine) == await version_in(new) == 2
        there, wanted = await keys_of(engine), await keys_of(new)
        assert {table: there[table] for table in wanted} == wanted
        await check_everything_works(SQLStore(engine))
        await migrate(engine, progress=steps.append)
        assert await keys_of(engine) == there


async def test_the_keys_of_a_search_index_are_migrated_too() -> None:
    async with database("postgres") as engine:
        await migrate(engine)
        keys = await keys_of(engine)
        assert set(keys) > {"memoryspace_search", "memoryspace_search_vector"}
        for table, (key, references, _, type_) in keys.items():
            assert "user_id" in key, table
            assert all("user_id" in columns for columns, *_ in references), table
            assert type_ == "VARCHAR", table


async def test_writers_go_on_while_a_database_is_migrated() -> None:
    async with database("postgres") as engine:
        scopes = [Scope(f"user {n}", "one") for n in range(4)]
        added: dict[Scope, list[str]] = {scope: [] for scope in scopes}
        is_done = asyncio.Event()

        async def keep_writing(scope: Scope) -> None:
            store = SQLStore(engine)
            while not is_done.is_set():
                new = note(new_id())
                places = await stored(store, scope, [new])
                await store.put_vectors(scope.user, SPACE, numbered(places))
                added[scope].append(new.id)

        async def move() -> None:
            await migrate(engine)
            is_done.set()

        await asyncio.gather(move(), *map(keep_writing, scopes))
        for scope, ids in added.items():
            assert [each.id for each in await SQLStore(engine).select(scope)] == ids
            assert len(await everything(SQLStore(engine), scope.user)) == len(ids) > 0


@pytest.mark.parametrize("at", [2, 8, 14])
async def test_an_interrupted_migration_goes_on_where_it_stopped(at: int) -> None:
    def stop(step: Step) -> None:
        if step.done == at:
            raise RuntimeError("the power went off")

    async with database("postgres") as engine, database("postgres", former=False) as new:
        with pytest.raises(RuntimeError):
            await migrate(engine, progress=stop)
        assert await version_in(engine) == 1
        left: list[Step] = []
        await migrate(engine, progress=left.append)
        await SQLStore(new).create_tables()
        there, wanted = await keys_of(engine), await keys_of(new)
        assert {table: there[table] for table in wanted} == wanted
        await check_everything_works(SQLStore(engine))


async def test_an_index_that_was_left_half_built_is_built_again() -> None:
    async with database("postgres") as engine:
        async with engine.begin() as on:
            await on.exec_driver_sql(
                "CREATE UNIQUE INDEX memoryspace_record_by_user "
                "ON memoryspace_record (user_id, seq)"
            )
            await on.exec_driver_sql(
                "UPDATE pg_index SET indisvalid = false "
                "WHERE indexrelid = 'memoryspace_record_by_user'::regclass"
            )
        await migrate(engine)
        assert (await keys_of(engine))["memoryspace_record"][0] == ["user_id", "seq"]


async def test_a_table_in_use_is_waited_for() -> None:
    async with database("postgres") as engine:
        async with engine.connect() as reader:
            await reader.execute(text("SELECT count(*) FROM memoryspace_vector"))
            moving = asyncio.create_task(migrate(engine))
            async with engine.connect() as watcher:
                while not await _is_waiting(watcher):  # only the server knows
                    await watcher.rollback()  # an open transaction would be waited for, too
                    await asyncio.sleep(0.01)
            await reader.rollback()
        async with asyncio.timeout(120):
            await moving
        assert await version_in(engine) == 2


async def _is_waiting(on: Any) -> bool:
    waits = "wait_event_type = 'Lock' AND datname = current_database()"
    query = text(f"SELECT count(*) FROM pg_stat_activity WHERE {waits}")  # noqa: S608
    return bool((await on.execute(query)).scalar_one())


async def test_one_process_migrates_at_a_time() -> None:
    async with database("postgres") as engine:
        await SQLStore(engine).create_tables()
        async with engine.begin() as other:
            await other.execute(text(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})"))
            with pytest.raises(StoreBusy, match="another process is migrating"):
                await migrate(engine)
        assert await migrate(engine) == 2


@every_backend
async def test_tables_of_a_later_release_are_refused(backend: str) -> None:
    async with database(backend, former=False) as engine:
        await SQLStore(engine).create_tables()
        async with engine.begin() as on:
            await on.execute(text("UPDATE memoryspace_schema SET version = 99"))
        later = create_async_engine(engine.url, poolclass=NullPool)
        with pytest.raises(SchemaTooNew, match=r"layout 99.*upgrade memoryspace"):
            await SQLStore(later).count(Scope("Ann"))
        with pytest.raises(SchemaTooNew):
            await migrate(later)


async def test_a_search_index_cannot_be_added_to_an_outdated_layout() -> None:
    from memoryspace.service import ServiceSettings, SQLMemoryService

    async with database("postgres") as engine:
        async with engine.begin() as on:
            for table in ("search_progress", "search_vector", "search"):
                await on.execute(text(f"DROP TABLE memoryspace_{table}"))
        settings = ServiceSettings(embedder=None)
        async with SQLMemoryService(engine, search="server", settings=settings) as service:
            await service.add_memory("Ann", ["I live in Oslo"])
            with pytest.raises(StoreError, match="migrate"):
                await service.search("Ann", "Oslo")
            await migrate(engine)
            assert len(await service.search("Ann", "Oslo")) == 1


async def test_tables_cannot_get_another_number_of_partitions() -> None:
    async with database("postgres", former=False) as engine:
        await SQLStore(engine, partitions=2).create_tables()
        other = create_async_engine(engine.url)
        with pytest.raises(InvalidInput, match="have 2 partitions, not 3"):
            await SQLStore(other, partitions=3).create_tables()
        assert await SQLStore(other).count(Scope("Ann")) == 0
        await other.dispose()


@pytest.mark.parametrize("partitions", [0, -1, 5000, True, 2.0])
async def test_an_impossible_number_of_partitions_is_refused(partitions: Any) -> None:
    with pytest.raises(InvalidInput, match="partitions must be"):
        SQLStore("postgresql://localhost/x", partitions=partitions)
    with pytest.raises(InvalidInput, match="only PostgreSQL"):
        SQLStore("sqlite://", partitions=4)
