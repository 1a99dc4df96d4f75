"""Whose transaction it is.

Given an engine, every call runs in a short transaction of its own and leaves nothing checked out.
Given an ``AsyncSession``, a call joins the caller's transaction if one is open, inside a savepoint,
and never commits, rolls back or closes it. If none is open, the call uses the session's engine for
a short transaction of its own: what is remembered is safe at once, and no lock or connection is
held while an agent thinks. A session that has no engine, being bound to a connection, is always
joined.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from typing import TypeAlias, TypeVar

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession, AsyncTransaction

from ...errors import InvalidInput, StoreBusy, StoreError, StoreUnavailable
from ...loops import finish
from ..remains import Remainder
from .engines import (
    PoolState,
    checkpoint,
    has_one_connection,
    overwrite_deleted,
    session_turn,
    state_of,
    take_write_lock,
)
from .remaining import remains_of, scrub
from .schema import DIALECTS, MYSQL_FAMILY
from .troubles import OutcomeUnknown, has_undone_all, is_missing_table, translated

logger = logging.getLogger(__name__)
T = TypeVar("T")
Work: TypeAlias = Callable[[AsyncConnection], Awaitable[T]]

_HOSTS = Remainder("the database of a session that was handed in", "its transaction has ended")

MAX_WAIT_SECONDS = 20.0
BACKOFF_SECONDS = 0.01


class Transactions:
    """Runs pieces of work on a connection, each in the right transaction."""

    def __init__(self, bind: AsyncEngine | AsyncSession) -> None:
        if not isinstance(bind, AsyncEngine | AsyncSession):
            raise InvalidInput(
                f"expected an AsyncEngine or an AsyncSession, got {type(bind).__name__}"
            )
        self._session = bind if isinstance(bind, AsyncSession) else None
        engine = bind if isinstance(bind, AsyncEngine) else bind.bind
        self._engine = engine if isinstance(engine, AsyncEngine) else None
        if self._engine is not None and self._engine.dialect.name not in DIALECTS:
            raise InvalidInput(
                f"{self._engine.dialect.name} is not supported; use {', '.join(DIALECTS)}"
            )

    async def write(self, work: Work[T]) -> T:
        """Run ``work`` so that all of it happens or none."""
        return await self._run(work, writing=True)

    async def read(self, work: Work[T]) -> T:
        """Run ``work``, which changes nothing, and hold no connection afterwards."""
        return await self._run(work, writing=False)

    async def prepare(self) -> None:
        """Create the tables if they are missing."""

        async def nothing(_: AsyncConnection) -> None:
            return None

        await self.read(nothing)

    async def settle(self) -> None:
        """Leave the database tidy, if it is an engine's that was passed in or made for us."""
        if self._session is None and self._engine is not None:
            await checkpoint(self._engine)

    async def remains(self) -> tuple[Remainder, ...]:
        """Tell what the database may hold of what was deleted."""
        if self._engine is None or (self._session is not None and self._session.in_transaction()):
            return (_HOSTS,)
        try:
            return await remains_of(self._engine)
        except Exception as error:
            raise translated(error) or error from error

    async def scrub(self) -> None:
        """Write a SQLite file anew."""
        if self._session is not None or self._engine is None:
            raise InvalidInput(
                "a store on somebody's session rewrites no file; open it on the engine"
            )
        await scrub(self._engine)

    async def _run(self, work: Work[T], *, writing: bool) -> T:
        if self._session is not None:
            async with session_turn(self._session):
                if self._engine is None or self._session.in_transaction():
                    return await _as_guest(self._session, work, writing=writing)
        assert self._engine is not None  # or else the session was joined
        return await _on_its_own(self._engine, work, writing=writing)


async def _on_its_own(engine: AsyncEngine, work: Work[T], *, writing: bool) -> T:
    """Run work in a transaction of its own, again if that may help."""
    deadline = time.monotonic() + MAX_WAIT_SECONDS
    attempt = 0
    while True:
        attempt += 1
        state = state_of(engine)
        try:
            await state.ensure_schema(engine)
            attempted = _attempt(engine, state, work, writing=writing)
            # A cancelled call closes its connection, and with the only one goes a database in RAM.
            return await (finish(attempted) if has_one_connection(engine) else attempted)
        except Exception as error:
            trouble = translated(error)
            if trouble is None:
                raise
            if is_missing_table(error) and attempt == 1:
                state.has_schema = False  # dropped, or undone with the transaction that made it
            elif not _may_pass(trouble, attempt, deadline):
                raise trouble from error
            logger.debug("attempt %d is repeated: %s", attempt, trouble)
        await asyncio.sleep(random.uniform(0, BACKOFF_SECONDS * 2 ** min(attempt, 6)))


async def _attempt(engine: AsyncEngine, state: PoolState, work: Work[T], *, writing: bool) -> T:
    async with state.turn(engine, writing=writing), engine.connect() as connection:
        if _commits_each_statement(connection):
            await connection.execution_options(isolation_level="READ COMMITTED")
        if not writing:
            return await work(connection)
        await overwrite_deleted(connection)
        transaction = await connection.begin()
        result = await work(connection)
        await _commit(transaction)
        return result


async def _as_guest(session: AsyncSession, work: Work[T], *, writing: bool) -> T:
    connection = await session.connection()
    if _commits_each_statement(connection):
        raise InvalidInput("this session commits each statement; nothing in it can be atomic")
    state = state_of(connection.engine)
    shared = has_one_connection(connection.engine)
    try:
        async with state.turn(connection.engine, writing=shared and writing):
            await state.ensure_schema_for(session, connection)
            if connection.dialect.name == "sqlite":
                if not writing:
                    return await work(connection)
                await take_write_lock(connection)  # or releasing the savepoint would commit
            async with connection.begin_nested():
                return await work(connection)
    except Exception as error:
        trouble = translated(error)
        if trouble is None:
            raise
        if connection.dialect.name in MYSQL_FAMILY and has_undone_all(error):
            await connection.invalidate()  # so that the host's commit cannot seem to succeed
            trouble = StoreBusy(f"{trouble}; the database has rolled back your transaction")
        raise trouble from error


async def _commit(transaction: AsyncTransaction) -> None:
    try:
        await transaction.commit()
    except Exception as error:
        trouble = translated(error)
        if not isinstance(trouble, StoreUnavailable) or isinstance(trouble, StoreBusy):
            raise
        raise OutcomeUnknown(
            f"{trouble}; it broke while committing, so what was sent may or may not be stored: "
            f"repeat the call, records that are there already are skipped"
        ) from error


def _may_pass(trouble: StoreError, attempt: int, deadline: float) -> bool:
    """Tell whether another try may help: a lock is waited for, a lost connection tried anew once.

    A pooled connection may be dead because the server was restarted long ago; the first failure
    empties the pool, so the second try uses a fresh connection and tells the truth.
    """
    if isinstance(trouble, StoreBusy):
        return time.monotonic() < deadline
    return isinstance(trouble, StoreUnavailable) and attempt == 1


def _commits_each_statement(connection: AsyncConnection) -> bool:
    """Tell whether a server connection is in autocommit mode (SQLite's is begun explicitly)."""
    if connection.dialect.name == "sqlite":
        return False
    of_engine = getattr(connection.dialect, "_on_connect_isolation_level", None)
    options = (
        connection.sync_connection.get_execution_options() if connection.sync_connection else {}
    )
    return options.get("isolation_level", of_engine) == "AUTOCOMMIT"
