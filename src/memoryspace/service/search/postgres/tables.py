"""The tables of the index in PostgreSQL, beside those of the store.

Every row belongs to one user and references a record. Removing the record, from any process,
removes the row. The indexing progress of a session references the session's row in the same way.
Vectors need the extension ``vector`` (pgvector 0.5 or later).
"""

from __future__ import annotations

import logging
from itertools import compress
from typing import Any
from zlib import crc32

from sqlalchemy import (
    REAL,
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    String,
    Table,
    Text,
    cast,
    func,
    select,
    text,
    type_coerce,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql import ColumnElement
from sqlalchemy.sql.expression import BindParameter
from sqlalchemy.types import UserDefinedType

from ....retrieval.text.analysis import VERSION
from ....retrieval.text.stems import DEFAULT_LANGUAGE, stems_for
from ....store.sql.engines import SCHEMA_LOCK
from ....store.sql.layout import create_missing
from ....store.sql.schema import records, sessions

logger = logging.getLogger(__name__)

_FORM = 2  # version of the rows: increment it when their content changes

# Identifies how words were analysed. Rows of another reading are ignored and made again, so that
# processes of two releases can share a database.
READING = crc32(f"{_FORM}, {VERSION}, {stems_for(DEFAULT_LANGUAGE).version}".encode()) >> 1


class VectorType(UserDefinedType[Any]):
    """pgvector's type, of any dimension: an exact scan needs no fixed one.

    Values go in as lists of numbers and come out as bytes, the fastest form to read.
    """

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        """Return the type's name."""
        return "vector"

    def bind_expression(self, bindvalue: BindParameter[Any]) -> ColumnElement[Any]:
        """Cast a list of numbers to a vector."""
        return cast(type_coerce(bindvalue, ARRAY(REAL())), _PlainVectorType())

    def column_expression(self, colexpr: ColumnElement[Any]) -> ColumnElement[Any]:
        """Select pgvector's binary form: the dimension in two bytes, two unused, the numbers."""
        return func.vector_send(colexpr, type_=LargeBinary())


class _PlainVectorType(UserDefinedType[Any]):
    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        """Return the type's name."""
        return "vector"


def _of_record() -> ForeignKeyConstraint:
    target = [records.c.user_id, records.c.seq]
    return ForeignKeyConstraint(["user_id", "seq"], target, ondelete="CASCADE")


words_metadata = MetaData()
vectors_metadata = MetaData()

# The searchable form of a record. ``tokens`` are the hashes of its distinct words, mixed with the
# user's id, so that the index lists the records of one user for a word; ``counts`` has a byte for
# each. The columns that conditions filter by come from the record's entry.
entries = Table(
    "memoryspace_search",
    words_metadata,
    Column("user_id", String, primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("reading", Integer, primary_key=True, autoincrement=False),
    Column("session_id", Text, nullable=False),
    Column("place", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("role", Text),
    Column("speaker", Text),
    Column("marks", Text, nullable=False),
    Column("time", Double),
    Column("expires_at", Double),
    Column("instructs", Boolean, nullable=False),
    Column("title", Text),
    Column("importance", Double),
    Column("traits", SmallInteger),
    Column("fullness", Double),
    Column("length", Integer, nullable=False),
    Column("tokens", ARRAY(BigInteger), nullable=False),
    Column("counts", LargeBinary, nullable=False),
    _of_record(),
)
_e = entries.c
# Without a list of pending entries: it would hold every user's, and every search would read it.
Index(
    "memoryspace_search_tokens",
    _e.tokens,
    postgresql_using="gin",
    postgresql_with={"fastupdate": "off"},
)
Index(
    "memoryspace_search_place",
    _e.user_id,
    _e.session_id,
    _e.place,
    postgresql_include=[
        "reading",
        "expires_at",
        "length",
    ],  # so that counting does not read the rows
)
Index("memoryspace_search_time", _e.user_id, _e.time)
Index("memoryspace_search_speaker", _e.user_id, _e.speaker, _e.seq)
Index("memoryspace_search_standing", _e.user_id, _e.seq, postgresql_where=_e.instructs)

# The place up to which an arm has indexed a session. ``made`` is a random number for each row, so
# that a session that was erased and created again is not taken for the former one.
progress = Table(
    "memoryspace_search_progress",
    words_metadata,
    Column("user_id", String, primary_key=True),
    Column("session_id", Text, primary_key=True),
    Column("arm", Text, primary_key=True),
    Column("made", BigInteger, nullable=False),
    Column("done", BigInteger, nullable=False),
    ForeignKeyConstraint(
        ["user_id", "session_id"],
        [sessions.c.user_id, sessions.c.session_id],
        ondelete="CASCADE",
    ),
)

vectors = Table(
    "memoryspace_search_vector",
    vectors_metadata,
    Column("user_id", String, primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("space", Text, primary_key=True),
    Column("vector", VectorType(), nullable=False),
    _of_record(),
)
Index("memoryspace_search_vector_user", vectors.c.user_id, vectors.c.space)


async def create_tables(on: AsyncConnection, *, with_vectors: bool) -> bool:
    """Create missing tables; return whether vectors are available.

    Any number of processes may call this at the same time.
    """
    await on.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": SCHEMA_LOCK})
    await on.run_sync(create_missing, words_metadata)
    await _add_missing_columns(on)
    if not with_vectors or not await _has_extension(on):
        return False
    await on.run_sync(create_missing, vectors_metadata)
    # A vector stays in its row as long as it fits a page: a scan reads them all.
    keep = f"ALTER TABLE {vectors.name} ALTER COLUMN vector SET STORAGE MAIN"
    if not await _is_kept_in_row(on):
        await on.exec_driver_sql(keep)
    return True


async def _add_missing_columns(on: AsyncConnection) -> None:
    """Add the columns that the first release did not have; its rows are of another reading."""
    query = text(
        "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(:table) AND attnum > 0"
    )
    there = {str(name) for name in (await on.execute(query, {"table": entries.name})).scalars()}
    for column in entries.columns:
        if there and column.name not in there:
            kind = column.type.compile(on.dialect)
            await on.exec_driver_sql(
                f"ALTER TABLE {entries.name} ADD COLUMN IF NOT EXISTS {column.name} {kind}"
            )


async def tables_there(on: AsyncConnection) -> list[Table]:
    """Return the tables that exist, progress first: deleting it makes a running indexer give up."""
    tables = (progress, entries, vectors)
    query = select(*(func.to_regclass(table.name).is_not(None) for table in tables))
    return list(compress(tables, (await on.execute(query)).one()))


async def _has_extension(on: AsyncConnection) -> bool:
    installed = text("SELECT count(*) FROM pg_extension WHERE extname = 'vector'")
    if (await on.execute(installed)).scalar_one():
        return True
    try:
        async with on.begin_nested():
            await on.exec_driver_sql("CREATE EXTENSION IF NOT EXISTS vector")
    except DBAPIError as error:  # not on this server, or not for this role
        logger.warning(
            "searching by words only: the extension 'vector' is missing and cannot be created "
            "(%s); ask the owner of the database to run: CREATE EXTENSION vector",
            str(error.orig).partition("\n")[0],
        )
        return False
    return True


async def _is_kept_in_row(on: AsyncConnection) -> bool:
    storage = text(
        "SELECT attstorage FROM pg_attribute "
        "WHERE attrelid = to_regclass(:table) AND attname = 'vector'"
    )
    return (await on.execute(storage, {"table": vectors.name})).scalar() in ("m", b"m")
