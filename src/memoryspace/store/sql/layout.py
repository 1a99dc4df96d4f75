"""Creates the tables, whole or in partitions, and keeps the version of their layout.

The version is a row in the database. Tables of an earlier version keep working: SQLite's are
upgraded when they are opened, a server's by ``migrate``. Tables of a later version are refused.

1. The first release: ``seq`` alone is the key of a record. It had no row.
2. In PostgreSQL the user is in every key; an index finds expired records.
"""

from __future__ import annotations

import logging
from typing import Any

from sqlalchemy import Connection, MetaData, Table, inspect, select, text
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.schema import CreateColumn, CreateTable

from ...errors import InvalidInput, SchemaTooNew, StoreError
from .schema import metadata, records, schema_in, sessions, vectors, versions
from .statements import upsert

logger = logging.getLogger(__name__)

VERSION = 2
FIRST = 1
MOST_PARTITIONS = 1024
PART = "store"
EXPIRY = next(each for each in records.indexes if each.name == "memoryspace_record_expiry")


class _CreateInPartitions(CreateTable):
    """Creates a table that is partitioned by a hash of the user."""

    inherit_cache = False


@compiles(_CreateInPartitions)
def _in_partitions(element: CreateTable, compiler: Any, **options: Any) -> str:
    return f"{compiler.visit_create_table(element, **options)} PARTITION BY HASH (user_id)"


def check_partitions(dialect: str, partitions: int | None) -> None:
    """Raise ``InvalidInput`` unless tables can have this number of partitions."""
    if partitions is None:
        return
    if isinstance(partitions, bool) or not isinstance(partitions, int):
        raise InvalidInput(f"partitions must be a whole number, got {partitions!r}")
    if not 1 <= partitions <= MOST_PARTITIONS:
        raise InvalidInput(f"partitions must be 1 to {MOST_PARTITIONS}, got {partitions}")
    if dialect != "postgresql":
        raise InvalidInput(f"only PostgreSQL's tables have partitions, got {dialect}")


def is_complete(on: Connection, partitions: int | None = None) -> bool:
    """Return whether all tables exist, in a layout that needs no change now.

    Raises:
        SchemaTooNew: A later version made them.
        InvalidInput: They have another number of partitions.
    """
    found, schema = inspect(on), schema_in(on)
    if not all(found.has_table(each.name, schema) for each in (records, sessions, vectors)):
        return False
    if not found.has_table(versions.name, schema) or _missing_columns(on):
        return False
    _check_partitions_of(on, partitions)
    version = version_of(on)
    if version < VERSION and on.dialect.name != "sqlite":
        _say_outdated(version)
    return version == VERSION or on.dialect.name != "sqlite"


def create(on: Connection, partitions: int | None = None) -> None:
    """Create missing tables and columns; upgrade a SQLite file. Existing data stays as it is."""
    is_new = not inspect(on).has_table(records.name, schema_in(on))
    create_missing(on, metadata, partitions)
    for column in _missing_columns(on):
        form = CreateColumn(sessions.c[column]).compile(dialect=on.dialect)
        on.exec_driver_sql(f"ALTER TABLE {_name(on, sessions.name)} ADD COLUMN {form}")
    if not is_new and version_of(on) < VERSION and on.dialect.name == "sqlite":
        EXPIRY.create(on, checkfirst=True)
    if is_new or _is_current(on):
        set_version(on, VERSION)
    elif not on.execute(select(versions.c.version)).first():
        set_version(on, FIRST)
    is_complete(on, partitions)


def create_missing(on: Connection, tables: MetaData, partitions: int | None = None) -> None:
    """Create those of the tables that are missing, in as many partitions as the records have.

    Args:
        on: A connection in a transaction.
        tables: The tables. Those with users' rows have the user in every key.
        partitions: In how many partitions, if the records have no table yet.

    Raises:
        StoreError: A new table would reference the records of an outdated layout.
    """
    parts = _wanted_partitions(on, partitions)
    _check_referable(on, tables)
    if not parts:
        tables.create_all(on)
        return
    found, schema = inspect(on), schema_in(on)
    for table in tables.sorted_tables:
        if found.has_table(table.name, schema):
            continue
        if "user_id" in table.c:
            _create_in_partitions(on, table, parts)
        else:
            table.create(on)


def partitions_of(on: Connection) -> int:
    """Return in how many partitions the records are: 0 for a plain table, or for none."""
    if on.dialect.name != "postgresql":
        return 0
    query = text("SELECT count(*) FROM pg_inherits WHERE inhparent = to_regclass(:name)")
    return int(on.execute(query, {"name": _name(on, records.name)}).scalar_one())


def version_of(on: Connection) -> int:
    """Return the version of the tables; raise ``SchemaTooNew`` if it is a later one."""
    query = select(versions.c.version).where(versions.c.part == PART)
    version = int(on.execute(query).scalar() or FIRST)
    if version > VERSION:
        raise SchemaTooNew(
            f"the tables in this database have the layout {version}, of a later release; this one "
            f"knows layouts up to {VERSION}: upgrade memoryspace"
        )
    return version


def set_version(on: Connection, version: int) -> None:
    """Write the version."""
    row = {"part": PART, "version": version}
    on.execute(upsert(on.dialect, versions, row, {"version": version}))


def _check_referable(on: Connection, tables: MetaData) -> None:
    """Raise if missing tables reference records by user and seq, but are older than that key."""
    found, schema = inspect(on), schema_in(on)
    if on.dialect.name != "postgresql" or not found.has_table(records.name, schema):
        return
    new = [each for each in tables.tables.values() if not found.has_table(each.name, schema)]
    if any("seq" in each.c for each in new) and not _is_current(on):
        raise StoreError(
            f"the tables of this database have the layout {FIRST}, to which {new[0].name} "
            "cannot be added; first call memoryspace.store.sql.migrate(address)"
        )


def _is_current(on: Connection) -> bool:
    """Return whether the tables look as this version makes them, whatever their version says."""
    found, schema = inspect(on), schema_in(on)
    if not any(each["name"] == EXPIRY.name for each in found.get_indexes(records.name, schema)):
        return False
    key = found.get_pk_constraint(records.name, schema)["constrained_columns"]
    return "user_id" in key or on.dialect.name != "postgresql"


def _wanted_partitions(on: Connection, partitions: int | None) -> int:
    if on.dialect.name != "postgresql":
        return 0
    there = inspect(on).has_table(records.name, schema_in(on))
    return partitions_of(on) if there else partitions or 0


def _check_partitions_of(on: Connection, partitions: int | None) -> None:
    if partitions is None:
        return
    there = partitions_of(on)
    if there != partitions:
        has = f"{there} partitions" if there else "no partitions"
        raise InvalidInput(
            f"the tables of this database have {has}, not {partitions}: they are partitioned when "
            "they are made; copy the records into another database to change that"
        )


def _create_in_partitions(on: Connection, table: Table, parts: int) -> None:
    """Create a table, its partitions and its indexes. Tables with the same users have the same."""
    on.execute(_CreateInPartitions(table))
    whole = _name(on, table.name)
    for number in range(parts):
        part = _name(on, f"{table.name}_p{number}")
        rows = f"FOR VALUES WITH (MODULUS {parts}, REMAINDER {number})"
        on.exec_driver_sql(f"CREATE TABLE {part} PARTITION OF {whole} {rows}")
    for index in table.indexes:
        index.create(on)


def _missing_columns(on: Connection) -> list[str]:
    columns = inspect(on).get_columns(sessions.name, schema_in(on))
    there = {column["name"] for column in columns}
    return [column.name for column in sessions.c if column.name not in there]


def _name(on: Connection, table: str) -> str:
    """Return a quoted name, with the schema that the caller maps our tables to."""
    quoted, schema = on.dialect.identifier_preparer, schema_in(on)
    name = quoted.quote(table)
    return name if schema is None else f"{quoted.quote_schema(schema)}.{name}"


def _say_outdated(version: int) -> None:
    logger.warning(
        "the tables of this database have the layout %d, which works; "
        "memoryspace.store.sql.migrate(address) brings it to %d while they are in use",
        version,
        VERSION,
    )
