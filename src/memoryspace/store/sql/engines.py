"""What must be known once per engine: whether the tables are there, and whose turn it is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from weakref import WeakKeyDictionary

from sqlalchemy import Engine, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession
from sqlalchemy.pool import StaticPool

from .schema import MYSQL_FAMILY, metadata

SCHEMA_LOCK = 0x6D656D6F  # "memo": any number that all our processes agree on
SCHEMA_LOCK_SECONDS = 60


class Turns:
    """One asyncio lock per event loop: those who wait are served in the order they came."""

    def __init__(self) -> None:
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = (
            WeakKeyDictionary()
        )

    def take(self) -> asyncio.Lock:
        """Return the running loop's lock, for ``async with``."""
        return self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())


class EngineState:
    """Shared by every store on one engine."""

    def __init__(self) -> None:
        self.has_schema = False
        self._turns = Turns()

    def turn(self, engine: AsyncEngine, *, writing: bool) -> AbstractAsyncContextManager[object]:
        """Wait for this process's turn where the database would only answer "locked".

        SQLite has one writer, and polling for its lock is unfair and slow. A database in memory
        has one connection altogether, so there readers wait as well.
        """
        if isinstance(engine.pool, StaticPool):
            return self._turns.take()
        if writing and engine.dialect.name == "sqlite":
            return self._turns.take()
        return nullcontext()

    async def ensure_schema(self, engine: AsyncEngine) -> None:
        """Create what is missing, once; any number of processes may do so at the same time."""
        if self.has_schema:
            return
        async with self.turn(engine, writing=True):
            if engine.dialect.name == "sqlite":
                await _let_readers_and_writer_coexist(engine)
            async with engine.begin() as connection, _schema_lock(connection):
                await create_tables(connection)
        self.has_schema = True


_states: WeakKeyDictionary[Engine, EngineState] = WeakKeyDictionary()
_session_turns: WeakKeyDictionary[AsyncSession, Turns] = WeakKeyDictionary()


def state_of(engine: AsyncEngine) -> EngineState:
    """Return the state all stores on this engine share."""
    return _states.setdefault(engine.sync_engine, EngineState())


def session_turn(session: AsyncSession) -> asyncio.Lock:
    """Return the lock under which a caller's session is used: it can do one thing at a time."""
    return _session_turns.setdefault(session, Turns()).take()


async def create_tables(connection: AsyncConnection) -> None:
    """Create the tables that are missing."""
    await connection.run_sync(metadata.create_all)


async def _let_readers_and_writer_coexist(engine: AsyncEngine) -> None:
    async with engine.connect() as connection:
        await connection.exec_driver_sql("PRAGMA journal_mode=WAL")


@asynccontextmanager
async def _schema_lock(connection: AsyncConnection) -> AsyncIterator[None]:
    dialect = connection.dialect.name
    if dialect == "sqlite":
        await connection.exec_driver_sql("BEGIN IMMEDIATE")
        yield
    elif dialect == "postgresql":
        await connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": SCHEMA_LOCK})
        yield
    elif dialect in MYSQL_FAMILY:
        name = {"name": f"memoryspace-{SCHEMA_LOCK}", "seconds": SCHEMA_LOCK_SECONDS}
        await connection.execute(text("SELECT GET_LOCK(:name, :seconds)"), name)
        try:
            yield
        finally:
            await connection.execute(text("SELECT RELEASE_LOCK(:name)"), {"name": name["name"]})
    else:
        yield
