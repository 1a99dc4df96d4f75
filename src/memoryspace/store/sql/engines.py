"""State shared by all stores on one connection pool: the schema, and the order of writers."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from sqlalchemy import Pool, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession
from sqlalchemy.pool import StaticPool

from ...errors import StoreBusy
from ...loops import PerLoop
from . import layout
from .replica import Replica
from .schema import MYSQL_FAMILY

logger = logging.getLogger(__name__)

SCHEMA_LOCK = 0x6D656D6F  # "memo": the same number in all our processes
SCHEMA_LOCK_SECONDS = 60

_OVERWRITES = "memoryspace: overwrites what it deletes"


class PoolState:
    """The state that all stores on one pool share."""

    def __init__(self) -> None:
        self.has_schema = False
        self.scrubbed: object = None  # the state of a SQLite file after its last rewrite
        self.replica: Replica | None = None  # what may answer for the database
        self._turn = PerLoop(asyncio.Lock)  # first come, first served

    def turn(self, engine: AsyncEngine, *, writing: bool) -> AbstractAsyncContextManager[object]:
        """Return the lock to hold where the database itself would only answer "locked".

        SQLite has one writer, and polling for its lock is unfair and slow. A database in memory has
        a single connection, so its readers wait too.
        """
        if has_one_connection(engine) or (writing and engine.dialect.name == "sqlite"):
            return self._turn.get()
        return nullcontext()

    async def ensure_schema(self, engine: AsyncEngine, partitions: int | None = None) -> None:
        """Create missing tables and columns, once. Safe in any number of processes at a time."""
        if self.has_schema:
            return
        async with (
            self.turn(engine, writing=True),
            engine.connect() as connection,
        ):
            await _use_write_ahead_log(connection)
            async with connection.begin():
                is_file = engine.dialect.name == "sqlite"  # where reading first could outdate us
                if is_file or not await connection.run_sync(layout.is_complete, partitions):
                    async with schema_lock(connection):
                        await connection.run_sync(layout.create, partitions)
        self.has_schema = True

    async def ensure_schema_for(
        self, guest: AsyncSession, connection: AsyncConnection, partitions: int | None = None
    ) -> None:
        """Create missing tables without committing the caller's transaction.

        Tables created in the caller's transaction can be rolled back with it, so they are checked
        again. MySQL commits before it creates a table, so there a separate connection does it.
        """
        if self.has_schema:
            return
        if await connection.run_sync(layout.is_complete, partitions):
            self.has_schema = guest not in _made_tables
        elif connection.dialect.name in MYSQL_FAMILY:
            await self.ensure_schema(connection.engine)
        else:
            _made_tables.add(guest)
            async with schema_lock(connection):
                await connection.run_sync(layout.create, partitions)


_states: WeakKeyDictionary[Pool, PoolState] = WeakKeyDictionary()
_session_turns: WeakKeyDictionary[AsyncSession, PerLoop[asyncio.Lock]] = WeakKeyDictionary()
_made_tables: WeakSet[AsyncSession] = WeakSet()


def state_of(engine: AsyncEngine) -> PoolState:
    """Return the state shared by all stores on this engine and on copies of it."""
    return _states.setdefault(engine.sync_engine.pool, PoolState())


def session_turn(session: AsyncSession) -> asyncio.Lock:
    """Return the lock for a caller's session, which cannot run two calls at a time."""
    return _session_turns.setdefault(session, PerLoop(asyncio.Lock)).get()


def has_one_connection(engine: AsyncEngine) -> bool:
    """Return whether the pool has a single connection, as for a SQLite database in memory."""
    return isinstance(engine.sync_engine.pool, StaticPool)


def file_of(engine: AsyncEngine) -> Path | None:
    """Return the file of a SQLite database; ``None`` for any other database."""
    name = engine.url.database
    is_file = engine.dialect.name == "sqlite" and not has_one_connection(engine)
    return Path(name).absolute() if is_file and name and not name.startswith("file:") else None


async def take_write_lock(on: AsyncConnection) -> None:
    """Begin a SQLite transaction that can write.

    Python's driver begins one only at the first change. By then another process may have written
    and made earlier reads outdated.
    """
    raw = await on.get_raw_connection()
    if raw.driver_connection is not None and not raw.driver_connection.in_transaction:
        await on.exec_driver_sql("BEGIN IMMEDIATE")


async def checkpoint(engine: AsyncEngine) -> None:
    """Move SQLite's write-ahead log into the database file, as far as readers allow."""
    if engine.dialect.name == "sqlite" and not has_one_connection(engine):
        async with engine.connect() as connection:
            await _try_driver(connection, "PRAGMA wal_checkpoint(PASSIVE)")


async def _use_write_ahead_log(connection: AsyncConnection) -> None:
    """Switch a SQLite file to write-ahead logging, permanently.

    Readers and the writer then do not block each other, and commits are three times as fast. If it
    is not possible, everything works, only slower.
    """
    if connection.dialect.name == "sqlite":
        await _try_driver(connection, "PRAGMA journal_mode=WAL")


async def overwrite_deleted(connection: AsyncConnection) -> None:
    """Make SQLite overwrite deleted data on this connection. Sent once per connection."""
    made = connection.sync_connection
    if connection.dialect.name == "sqlite" and made is not None and _OVERWRITES not in made.info:
        made.info[_OVERWRITES] = True
        await _try_driver(connection, "PRAGMA secure_delete=ON")


async def _try_driver(connection: AsyncConnection, pragma: str) -> None:
    try:
        await ask_driver(connection, pragma)
    except sqlite3.Error as error:
        logger.debug("%s was not possible: %s", pragma, error)


async def ask_driver(connection: AsyncConnection, pragma: str) -> list[Any]:
    """Run a pragma on the driver: SQLAlchemy may be configured to begin a transaction first."""
    driver = (await connection.get_raw_connection()).driver_connection
    return list(await driver.execute_fetchall(pragma))  # type: ignore[union-attr]  # aiosqlite's


@asynccontextmanager
async def schema_lock(connection: AsyncConnection) -> AsyncIterator[None]:
    """Hold the lock under which tables are made, until the transaction ends."""
    dialect = connection.dialect.name
    if dialect in MYSQL_FAMILY:
        async with _named_lock(connection, f"memoryspace-{SCHEMA_LOCK}"):
            yield
        return
    if dialect == "sqlite":
        await take_write_lock(connection)
    else:
        await connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": SCHEMA_LOCK})
    yield


@asynccontextmanager
async def _named_lock(connection: AsyncConnection, name: str) -> AsyncIterator[None]:
    take = text("SELECT GET_LOCK(:name, :seconds)")
    taken = await connection.execute(take, {"name": name, "seconds": SCHEMA_LOCK_SECONDS})
    if taken.scalar_one() != 1:
        raise StoreBusy("another process is still creating the tables; try again")
    try:
        yield
    finally:
        await connection.execute(text("SELECT RELEASE_LOCK(:name)"), {"name": name})
