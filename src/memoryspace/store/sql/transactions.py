"""Whose transaction it is.

Given an engine, every call runs in a short transaction of its own and leaves nothing checked out.
Given an ``AsyncSession``, a call joins the caller's transaction if one is open, inside a savepoint,
and never commits, rolls back or closes it. If none is open, the call uses the session's engine for
a short transaction of its own: what is remembered is safe at once, and no lock or connection is
held while an agent thinks.
"""

from __future__ import annotations

import asyncio
import logging
import random
import sqlite3
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias, TypeVar

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession, AsyncTransaction

from ...errors import StoreBusy, StoreError, StoreUnavailable
from .engines import EngineState, create_tables, session_turn, state_of
from .statements import take_write_lock

logger = logging.getLogger(__name__)
T = TypeVar("T")
Work: TypeAlias = Callable[[AsyncConnection], Awaitable[T]]

MAX_ATTEMPTS = 8
BACKOFF_SECONDS = 0.01

_BUSY_SQLSTATES = {"40001", "40P01", "55P03"}  # PostgreSQL: serialisation, deadlock, lock timeout
_BUSY_MYSQL_CODES = {1205, 1213}  # lock timeout, deadlock


class Transactions:
    """Runs pieces of work on a connection, each in the right transaction."""

    def __init__(self, bind: AsyncEngine | AsyncSession) -> None:
        if not isinstance(bind, AsyncEngine | AsyncSession):
            raise ValueError(
                f"expected an AsyncEngine or an AsyncSession, got {type(bind).__name__}"
            )
        self.session = bind if isinstance(bind, AsyncSession) else None
        engine = bind if isinstance(bind, AsyncEngine) else bind.bind
        self.engine = engine if isinstance(engine, AsyncEngine) else None

    async def write(self, work: Work[T]) -> T:
        """Run ``work`` so that all of it happens or none."""
        return await (self._join(work, writing=True) or self._own(work, writing=True))

    async def read(self, work: Work[T]) -> T:
        """Run ``work``, which changes nothing, and hold no connection afterwards."""
        return await (self._join(work, writing=False) or self._own(work, writing=False))

    def _join(self, work: Work[T], *, writing: bool) -> Awaitable[T] | None:
        """Return the work as part of the caller's open transaction, or ``None`` without one."""
        session = self.session
        if session is None or not (self.engine is None or session.in_transaction()):
            return None
        return _as_guest(session, work, writing=writing)

    async def _own(self, work: Work[T], *, writing: bool) -> T:
        assert self.engine is not None  # or else _join answered
        state = state_of(self.engine)
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                await state.ensure_schema(self.engine)
                return await self._attempt(state, work, writing=writing)
            except Exception as error:
                trouble = _translated(error)
                if trouble is None:
                    raise
                if attempt == MAX_ATTEMPTS or not _may_pass(trouble, attempt):
                    raise trouble from error
                logger.debug("attempt %d failed and is repeated: %s", attempt, error)
            await asyncio.sleep(random.uniform(0, BACKOFF_SECONDS * 2**attempt))
        raise AssertionError("the loop above returns or raises")

    async def _attempt(self, state: EngineState, work: Work[T], *, writing: bool) -> T:
        assert self.engine is not None
        async with state.turn(self.engine, writing=writing), self.engine.connect() as connection:
            if not writing:
                return await work(connection)
            transaction = await connection.begin()
            result = await work(connection)
            await _commit(transaction)
            return result


async def _as_guest(session: AsyncSession, work: Work[T], *, writing: bool) -> T:
    async with session_turn(session):
        connection = await session.connection()
        try:
            await _ensure_schema_for_guest(connection)
            if not writing:
                return await work(connection)
            if connection.dialect.name == "sqlite":
                await take_write_lock(connection)  # or releasing the savepoint would commit
            async with connection.begin_nested():
                return await work(connection)
        except Exception as error:
            trouble = _translated(error)
            if trouble is None:
                raise
            raise trouble from error


async def _ensure_schema_for_guest(connection: AsyncConnection) -> None:
    """Create the tables without committing the host's work.

    SQLite creates tables inside a transaction, and a second connection would wait for the host's
    lock for ever; elsewhere a connection of our own creates them.
    """
    state = state_of(connection.engine)
    if state.has_schema:
        return
    if connection.dialect.name == "sqlite":
        await create_tables(connection)
    else:
        await state.ensure_schema(connection.engine)


async def _commit(transaction: AsyncTransaction) -> None:
    try:
        await transaction.commit()
    except Exception as error:
        trouble = _translated(error)
        if trouble is None or isinstance(trouble, StoreBusy):
            raise
        raise _OutcomeUnknown(
            f"the connection broke while committing ({error}); what was sent may or may not be "
            f"stored: repeat the call, records that are there already are skipped"
        ) from error


class _OutcomeUnknown(StoreUnavailable):
    """Not repeated by us: the caller must know that it may have happened."""


def _may_pass(trouble: StoreError, attempt: int) -> bool:
    """Tell whether another try may help: a lock is waited for, a lost connection tried anew once.

    A pooled connection may be dead because the server was restarted long ago; the first failure
    empties the pool, so the second try uses a fresh connection and tells the truth.
    """
    if isinstance(trouble, StoreBusy):
        return True
    return isinstance(trouble, StoreUnavailable) and attempt == 1


def _translated(error: Exception) -> StoreError | None:
    """Return the error in our terms, or ``None`` for what is not the database's."""
    if isinstance(error, _OutcomeUnknown):
        return None
    if _is_busy(error):
        return StoreBusy(f"the database stayed locked by other writers: {error}")
    if _is_disconnected(error):
        return StoreUnavailable(f"the database cannot be reached: {error}; try again when it can")
    if isinstance(error, DBAPIError | sqlite3.Error):
        return StoreError(f"the database refused the operation: {error}")
    return None


def _is_busy(error: Exception) -> bool:
    original = error.orig if isinstance(error, DBAPIError) else error
    if isinstance(original, sqlite3.OperationalError):
        return "locked" in str(original)
    if getattr(original, "sqlstate", None) in _BUSY_SQLSTATES:
        return True
    arguments: tuple[Any, ...] = getattr(original, "args", ())
    return isinstance(error, DBAPIError) and bool(arguments) and arguments[0] in _BUSY_MYSQL_CODES


def _is_disconnected(error: Exception) -> bool:
    if isinstance(error, DBAPIError):
        if error.connection_invalidated:
            return True
        of_server = not isinstance(error.orig, sqlite3.Error)
        return of_server and isinstance(error, InterfaceError | OperationalError)
    # While connecting, asyncpg's and the system's own errors come through unwrapped.
    return isinstance(error, OSError) or type(error).__module__.startswith("asyncpg.")
