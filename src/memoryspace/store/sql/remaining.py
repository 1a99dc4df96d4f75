"""What databases keep of deleted rows, and for how long.

SQLite overwrites deleted rows, but its pages may hold older copies of them from when rows were
moved, and its log holds pages as they were. The log is emptied here; a file is free of copies once
it was written anew (``scrub``). Servers keep dead rows and logs by rules of their own.
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
PATIENCE = 200  # milliseconds that others are waited for

_POSTGRES_ROWS = Remainder(
    f"dead rows in PostgreSQL's tables ({TABLES}) and their indexes",
    f"VACUUM FULL {TABLES}; a plain VACUUM only lets their room be used again",
)
_POSTGRES_LOG = "its segments are recycled, some checkpoints later"
_INNODB_ROWS = Remainder(
    f"freed room in the files of {TABLES}, and the undo log",
    f"OPTIMIZE TABLE {TABLES}, once the server has purged its undo log",
)
_INNODB_LOG = Remainder("InnoDB's redo log", "as many changes more as it has room for")


class Scrubbed(NamedTuple):
    """A SQLite file as it was when it was last written anew; whoever writes, changes it."""

    size: int
    changed: int


async def remains_of(engine: AsyncEngine) -> tuple[Remainder, ...]:
    """Empty SQLite's log; tell what any database may still hold."""
    dialect = engine.dialect.name
    if dialect == "sqlite":
        return await _remains_in_file(engine)
    async with engine.connect() as connection:
        if dialect in MYSQL_FAMILY:
            return (_INNODB_ROWS, _INNODB_LOG, *await _binary_log(connection))
        return (_POSTGRES_ROWS, await _postgres_log(connection))


async def scrub(engine: AsyncEngine) -> None:
    """Write a SQLite file anew, so that it holds nothing but what is there."""
    if engine.dialect.name != "sqlite":
        raise InvalidInput(
            f"the files of {engine.dialect.name} are its own to rewrite; remains() tells how"
        )
    state = state_of(engine)
    await state.ensure_schema(engine)
    async with state.turn(engine, writing=True), engine.connect() as connection:
        try:
            await ask_driver(connection, "VACUUM")
        except sqlite3.OperationalError as error:
            raise StoreBusy(f"the file was not written anew: {error}; try again") from error
        if not await _empty_log(connection):
            raise StoreBusy("others read the file, so its log could not be emptied; try again")
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
        if state.scrubbed != _looks(file):  # before the log that proves it is emptied
            state.scrubbed = None
        found = []
        if not await _empty_log(connection):
            until = "those who read or write the file now are done, and this is asked again"
            found.append(Remainder(f"SQLite's log, {file}-wal", until))
        if state.scrubbed is None:
            found.append(Remainder(f"unused parts of pages in {file}", "scrub() writes it anew"))
        return tuple(found)


async def _empty_log(connection: AsyncConnection) -> bool:
    """Move the log into the file and cut it to nothing; tell whether nobody was in the way."""
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
    """Return what of a file changes whenever somebody writes; ``None`` if its log holds some."""
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
            f"{_POSTGRES_LOG}; in the archive for as long as that is kept",
        )
    return Remainder("PostgreSQL's write-ahead log", _POSTGRES_LOG)


async def _binary_log(connection: AsyncConnection) -> list[Remainder]:
    if await _setting(connection, "SELECT @@log_bin") in (0, "0", "OFF", None):
        return []
    seconds = await _setting(connection, "SELECT @@binlog_expire_logs_seconds")
    until = f"{seconds} seconds are over" if seconds else "somebody runs PURGE BINARY LOGS"
    return [Remainder("the binary log", until)]


async def _setting(connection: AsyncConnection, query: str) -> Any:
    try:
        return (await connection.execute(text(query))).scalar()
    except SQLAlchemyError:  # an older server, or one that does not say
        await connection.rollback()
        return None
