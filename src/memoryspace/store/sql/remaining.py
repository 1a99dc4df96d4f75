"""Traces of deleted rows in databases.

SQLite overwrites deleted rows, but its pages may contain older copies from when rows were moved,
and its log contains earlier versions of pages. ``remains_of`` empties the log; ``scrub`` rewrites
the file, which removes the copies. Servers keep dead rows and logs by their own rules.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from ...errors import InvalidInput, StoreBusy
from ..remains import Remainder
from .engines import ask_driver, has_one_connection, state_of
from .schema import MYSQL_FAMILY, records, sessions, vectors

TABLES = ", ".join(table.name for table in (records, sessions, vectors))
PATIENCE = 200  # milliseconds to wait for other connections

_POSTGRES_ROWS = Remainder(
    f"dead rows in PostgreSQL's tables ({TABLES}) and their indexes",
    f"VACUUM FULL {TABLES}; a plain VACUUM only makes their space reusable",
)
_POSTGRES_LOG = "its segments are recycled, some checkpoints later"
_INNODB_ROWS = Remainder(
    f"freed space in the files of {TABLES}, and the undo log",
    f"OPTIMIZE TABLE {TABLES}, once the server has purged its undo log",
)
_INNODB_LOG = Remainder("InnoDB's redo log", "it is overwritten by later changes")


class Scrubbed(NamedTuple):
    """The state of a SQLite file after its last rewrite. Every later write changes it."""

    size: int
    changed: int


async def remains_of(engine: AsyncEngine) -> tuple[Remainder, ...]:
    """Empty SQLite's log; return where a database may still hold deleted data."""
    dialect = engine.dialect.name
    if dialect == "sqlite":
        return await _remains_in_file(engine)
    async with engine.connect() as connection:
        if dialect in MYSQL_FAMILY:
            return (_INNODB_ROWS, _INNODB_LOG, *await _binary_log(connection))
        return (_POSTGRES_ROWS, await _postgres_log(connection))


async def scrub(engine: AsyncEngine) -> None:
    """Rewrite a SQLite file, so that it contains no deleted data."""
    if engine.dialect.name != "sqlite":
        raise InvalidInput(
            f"only {engine.dialect.name} itself can rewrite its files; remains() says how"
        )
    state = state_of(engine)
    await state.ensure_schema(engine)
    async with state.turn(engine, writing=True), engine.connect() as connection:
        try:
            await ask_driver(connection, "VACUUM")
        except sqlite3.OperationalError as error:
            raise StoreBusy(f"the file could not be rewritten: {error}; try again") from error
        if not await _empty_log(connection):
            raise StoreBusy("the log could not be emptied while others read the file; try again")
        file = await _file_of(connection)
        state.scrubbed = None if file is None else _looks(file)


async def _remains_in_file(engine: AsyncEngine) -> tuple[Remainder, ...]:
    state = state_of(engine)
    if has_one_connection(engine):  # a database in RAM
        return ()
    async with state.turn(engine, writing=True), engine.connect() as connection:
        file = await _file_of(connection)
        if file is None:
            return ()
        # Compare before the log is emptied: its contents prove a later write.
        if state.scrubbed != _looks(file):
            state.scrubbed = None
        found = []
        if not await _empty_log(connection):
            until = "current readers and writers are done and remains() is called again"
            found.append(Remainder(f"SQLite's log, {file}-wal", until))
        if state.scrubbed is None:
            found.append(Remainder(f"unused parts of pages in {file}", "scrub() rewrites it"))
        return tuple(found)


async def _empty_log(connection: AsyncConnection) -> bool:
    """Move the log into the file and truncate it; return whether no connection prevented it."""
    [(patience,)] = await ask_driver(connection, "PRAGMA busy_timeout")
    await ask_driver(connection, f"PRAGMA busy_timeout={PATIENCE}")
    try:
        [(is_busy, _, _)] = await ask_driver(connection, "PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.OperationalError:
        return False
    finally:
        await ask_driver(connection, f"PRAGMA busy_timeout={patience}")
    return not is_busy


async def _file_of(connection: AsyncConnection) -> Path | None:
    rows = await ask_driver(connection, "PRAGMA database_list")
    name = next((row[2] for row in rows if row[1] == "main"), "")
    return Path(name) if name else None


def _looks(file: Path) -> Scrubbed | None:
    """Return what changes with every write to a file; ``None`` if its log has unmerged writes."""
    log = file.with_name(f"{file.name}-wal")
    if log.exists() and log.stat().st_size:
        return None
    stat = os.stat(file)
    return Scrubbed(stat.st_size, stat.st_mtime_ns)


async def _postgres_log(connection: AsyncConnection) -> Remainder:
    archives = await _setting(connection, "SELECT current_setting('archive_mode')")
    if archives in ("on", "always"):
        return Remainder(
            "PostgreSQL's write-ahead log, and its archive",
            f"{_POSTGRES_LOG}; the archive, for as long as it is kept",
        )
    return Remainder("PostgreSQL's write-ahead log", _POSTGRES_LOG)


async def _binary_log(connection: AsyncConnection) -> list[Remainder]:
    if await _setting(connection, "SELECT @@log_bin") in (0, "0", "OFF", None):
        return []
    seconds = await _setting(connection, "SELECT @@binlog_expire_logs_seconds")
    until = f"{seconds} seconds have passed" if seconds else "PURGE BINARY LOGS is run"
    return [Remainder("the binary log", until)]


async def _setting(connection: AsyncConnection, query: str) -> Any:
    try:
        return (await connection.execute(text(query))).scalar()
    except SQLAlchemyError:  # an older server, or no permission
        await connection.rollback()
        return None
