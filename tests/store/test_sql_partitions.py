"""PostgreSQL by user: tables in partitions keep every contract, and nothing crosses users.

What is checked of the catalogue and of the statements is what a database that distributes tables by
user asks for: the user in every unique key and reference, and one user in every statement.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest
from sqlalchemy import event, text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from memoryspace import SQLStore
from memoryspace.service import ServiceSettings, SQLMemoryService
from memoryspace.service.search.postgres.tables import create_tables
from memoryspace.testing import STORE_CONTRACT, VECTORS_CONTRACT, StoreCheck
from memoryspace.testing.service_contract import SERVICE_CONTRACT, ServiceCheck

from backends import PARTITIONED, PARTITIONS, sql_url
from length import LONG, at_length

# The catalogue of users and the purge of expired rows look at everyone, and say so.
ACROSS_USERS = (
    re.compile(r"WITH RECURSIVE found.*min\(memoryspace_record\.user_id\)", re.DOTALL),
    re.compile(r"expires_at <= \S+ ORDER BY memoryspace_record\.expires_at"),
)
_TABLE = re.compile(r"\bmemoryspace_(?!schema)\w+(?: AS (\w+))?")
_CHANGES = re.compile(r"\b(?:FROM|JOIN|UPDATE|INTO|,)\s+(memoryspace_\w+)(?: AS (\w+))?")


@asynccontextmanager
async def partitioned() -> AsyncIterator[AsyncEngine]:
    engine = create_async_engine(sql_url(PARTITIONED, ""))
    await SQLStore(engine, partitions=PARTITIONS).create_tables()
    yield engine
    await engine.dispose()


@contextmanager
def statements_on(engine: AsyncEngine) -> Iterator[set[str]]:
    """Collect the statements on our tables that are sent meanwhile, making tables aside."""
    sent: set[str] = set()

    def note(*call: Any) -> None:
        statement = call[2]
        if "memoryspace_" in statement and not re.match(r"\s*(CREATE|ALTER|DROP)", statement):
            sent.add(statement)

    event.listen(engine.sync_engine, "before_cursor_execute", note)
    yield sent
    event.remove(engine.sync_engine, "before_cursor_execute", note)


def crosses_users(statement: str) -> bool:
    """Return whether a part of a statement reads or changes the rows of more than one user."""
    if any(each.search(statement) for each in ACROSS_USERS):
        return False
    into = re.match(r"INSERT INTO (memoryspace_\w+) \(([^)]*)\)", statement)
    if into and "user_id" not in into[2]:
        return into[1] != "memoryspace_schema"
    for table, alias in _CHANGES.findall(statement):
        name = alias or table
        if table == "memoryspace_schema" or (into and table == into[1] and not alias):
            continue
        if not re.search(rf"\b{name}\.user_id = |= {name}\.user_id\b", statement):
            return True
    return False


# The checks with tens of thousands of records look alike on whole tables, which have them always.
_LARGE = ("check_every_page_is_a_piece", "check_thousands_of")
STORE_CHECKS = [
    each
    for each in (*STORE_CONTRACT, *VECTORS_CONTRACT)
    if LONG or not each.__name__.startswith(_LARGE)
]


@pytest.mark.parametrize("check", STORE_CHECKS, ids=lambda each: each.__name__)
async def test_tables_in_partitions_keep_the_store_contract(check: StoreCheck) -> None:
    async with partitioned() as engine:
        with statements_on(engine) as sent:
            await check(lambda **options: SQLStore(engine, **options))
        assert [each for each in sent if crosses_users(each)] == []


@pytest.mark.parametrize("place", at_length(["server"], ["server", "process"]))
@pytest.mark.parametrize(
    "check", at_length(SERVICE_CONTRACT[::3], SERVICE_CONTRACT), ids=lambda each: each.__name__
)
async def test_tables_in_partitions_keep_the_service_contract(
    check: ServiceCheck, place: Any
) -> None:
    words = ServiceSettings(embedder=None)
    async with partitioned() as engine:
        with statements_on(engine) as sent:
            await check(
                lambda **options: SQLMemoryService(
                    engine, search=place, **{"settings": words, **options}
                )
            )
        assert [each for each in sent if crosses_users(each)] == []


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT x FROM memoryspace_vector JOIN memoryspace_record ON memoryspace_record.seq = "
        "memoryspace_vector.seq WHERE memoryspace_record.user_id = $1",
        "DELETE FROM memoryspace_record WHERE memoryspace_record.expires_at < $1",
        "INSERT INTO memoryspace_record (seq) VALUES ($1)",
        "SELECT n.seq FROM memoryspace_search AS a JOIN memoryspace_search AS n ON n.seq = a.seq "
        "WHERE a.user_id = $1",
    ],
)
def test_a_statement_that_crosses_users_is_noticed(statement: str) -> None:
    assert crosses_users(statement)


async def test_every_key_and_reference_holds_the_user() -> None:
    async with partitioned() as engine, engine.begin() as on:
        await create_tables(on, with_vectors=True)
        keys = (await on.execute(_UNIQUE)).all()
        references = (await on.execute(_REFERENCES)).all()
    assert {table for table, _ in keys} >= {
        "memoryspace_record", "memoryspace_session", "memoryspace_vector", "memoryspace_state",
        "memoryspace_search", "memoryspace_search_progress", "memoryspace_search_vector",
    }  # fmt: skip
    assert [row for row in keys if "user_id" not in row[1]] == []
    assert len(references) >= 4
    assert [row for row in references if row[1][0] != "user_id" or row[2][0] != "user_id"] == []


async def test_all_tables_of_users_have_the_partitions() -> None:
    async with partitioned() as engine, engine.begin() as on:
        await create_tables(on, with_vectors=True)
        rows = {row[0]: row[1] for row in await on.execute(_PARTITIONS)}
        types = (await on.execute(_TYPES)).scalars().all()
    assert set(rows.values()) == {PARTITIONS}
    assert len(rows) == 7
    assert types == ["character varying"]  # rows of one user stand together only if it is the same


async def test_an_address_may_give_the_partitions() -> None:
    url = sql_url(PARTITIONED, "")
    async with SQLStore(f"{url}?partitions={PARTITIONS}&pool_size=1&max_overflow=0") as store:
        await store.create_tables()
        assert store.engine is not None
        async with store.engine.connect() as on:
            rows = {row[0]: row[1] for row in await on.execute(_PARTITIONS)}
    assert rows["memoryspace_record"] == PARTITIONS


_COLUMNS = """array(SELECT attname::text FROM unnest(%s) WITH ORDINALITY AS listed(number, nth)
    JOIN pg_attribute ON attrelid = %s AND attnum = listed.number ORDER BY nth)"""
_UNIQUE = text(f"""
    SELECT c.relname, {_COLUMNS % ("i.indkey::int2[]", "c.oid")}
    FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
    WHERE i.indisunique AND c.relname LIKE 'memoryspace%' AND NOT c.relispartition
    AND c.relname <> 'memoryspace_schema'
""")  # noqa: S608
_REFERENCES = text(f"""
    SELECT c.relname, {_COLUMNS % ("k.conkey", "k.conrelid")}, {_COLUMNS % ("k.confkey", "k.confrelid")}
    FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
    WHERE k.contype = 'f' AND c.relname LIKE 'memoryspace%' AND NOT c.relispartition
    AND k.conparentid = 0
""")  # noqa: S608, E501
_PARTITIONS = text("""
    SELECT c.relname, (SELECT count(*) FROM pg_inherits WHERE inhparent = c.oid) FROM pg_class c
    WHERE c.relname LIKE 'memoryspace%' AND c.relname <> 'memoryspace_schema'
    AND c.relkind IN ('r', 'p') AND NOT c.relispartition
""")
_TYPES = text("""
    SELECT DISTINCT data_type FROM information_schema.columns
    WHERE table_name LIKE 'memoryspace%' AND column_name = 'user_id'
""")
