"""Transactions: a store's own, or the caller's.

On an engine, every call runs in its own short transaction and keeps no connection checked out. On
an ``AsyncSession`` with an open transaction, a call joins that transaction inside a savepoint and
never commits, rolls back or closes it. If none is open, the call uses the session's engine for its
own short transaction: the data is safe at once, and no lock or connection is held while an agent
waits for a model. A session bound to a connection has no engine and is always joined.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeAlias, TypeVar

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession, AsyncTransaction

from ...errors import InvalidInput, StoreBusy, StoreError, StoreUnavailable
from ...loops import finish
from ...retrying import Attempts, Backoff
from ..remains import Remainder
from ..staleness import may_be_stale
from .engines import (
    PoolState,
    checkpoint,
    has_one_connection,
    overwrite_deleted,
    session_turn,
    state_of,
    take_write_lock,
)
from .errors import OutcomeUnknown, has_undone_all, is_missing_table, translated
from .layout import check_partitions
from .remaining import remains_of, scrub
from .replica import CannotServe, Replica
from .schema import DIALECTS, MYSQL_FAMILY

logger = logging.getLogger(__name__)
T = TypeVar("T")
Work: TypeAlias = Callable[[AsyncConnection], Awaitable[T]]

_HOSTS = Remainder("the database of the caller's session", "its transaction has ended")

MAX_WAIT_SECONDS = 20.0
# Without a limit: the deadline is for locks alone. A lost connection is retried however late.
_BACKOFF = Backoff(first=0.02, longest=0.64)


class Transactions:
    """Runs functions on a connection, each in the right transaction."""

    def __init__(self, bind: AsyncEngine | AsyncSession, *, partitions: int | None = None) -> None:
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
        if self._engine is not None:
            check_partitions(self._engine.dialect.name, partitions)
        self._partitions = partitions

    async def write(self, work: Work[T], *, user: str | None = None) -> T:
        """Run ``work`` atomically. A replica shows ``user`` what it wrote before it answers."""
        replica = self._replica
        if replica is None or user is None:
            return await self._run(work, writing=True)
        try:
            return await self._run(work, writing=True)
        finally:  # a write that failed may be stored all the same
            replica.wrote(user)

    async def read(self, work: Work[T], *, user: str | None = None) -> T:
        """Run ``work``, which only reads, and keep no connection afterwards.

        With a ``user``, a replica may answer inside ``stale_reads``.
        """
        replica = self._replica
        if replica is not None and user is not None and may_be_stale():
            with suppress(CannotServe):
                return await replica.read(user, work)
        return await self._run(work, writing=False)

    @property
    def _replica(self) -> Replica | None:
        if self._session is not None or self._engine is None:
            return None
        return state_of(self._engine).replica

    async def prepare(self) -> None:
        """Create the tables if they are missing."""

        async def nothing(_: AsyncConnection) -> None:
            return None

        await self.read(nothing)

    async def settle(self) -> None:
        """Checkpoint the database, unless the store is on a caller's session."""
        if self._session is None and self._engine is not None:
            await checkpoint(self._engine)

    async def remains(self) -> tuple[Remainder, ...]:
        """Return where the database may hold deleted data."""
        if self._engine is None or (self._session is not None and self._session.in_transaction()):
            return (_HOSTS,)
        try:
            return await remains_of(self._engine)
        except Exception as error:
            raise translated(error) or error from error

    async def scrub(self) -> None:
        """Rewrite a SQLite file without deleted data."""
        if self._session is not None or self._engine is None:
            raise InvalidInput(
                "a store on a session cannot rewrite the file; open it on the engine"
            )
        await scrub(self._engine)

    async def _run(self, work: Work[T], *, writing: bool) -> T:
        if self._session is not None:
            async with session_turn(self._session):
                if self._engine is None or self._session.in_transaction():
                    return await _as_guest(
                        self._session, work, writing=writing, partitions=self._partitions
                    )
        assert self._engine is not None  # or else the session was joined
        return await _on_its_own(self._engine, work, writing=writing, partitions=self._partitions)


async def _on_its_own(
    engine: AsyncEngine, work: Work[T], *, writing: bool, partitions: int | None
) -> T:
    """Run work in its own transaction; retry if that can help."""
    deadline = time.monotonic() + MAX_WAIT_SECONDS
    async for attempt in Attempts(_BACKOFF):
        state = state_of(engine)
        try:
            await state.ensure_schema(engine, partitions)
            attempted = _attempt(engine, state, work, writing=writing)
            # A cancelled call closes its connection. A database in RAM would be lost with it.
            return await (finish(attempted) if has_one_connection(engine) else attempted)
        except Exception as error:
            trouble = translated(error)
            if trouble is None:
                raise
            if is_missing_table(error) and attempt == 1:
                state.has_schema = False  # dropped, or rolled back by its creator
            elif not _may_pass(trouble, attempt, deadline):
                raise trouble from error
            logger.debug("retrying after attempt %d: %s", attempt, trouble)
    raise AssertionError("the loop above returns or raises")


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


async def _as_guest(
    session: AsyncSession, work: Work[T], *, writing: bool, partitions: int | None
) -> T:
    connection = await session.connection()
    if _commits_each_statement(connection):
        raise InvalidInput(
            "this session is in autocommit mode, so no call can be atomic; pass one that is not"
        )
    state = state_of(connection.engine)
    shared = has_one_connection(connection.engine)
    try:
        async with state.turn(connection.engine, writing=shared and writing):
            await state.ensure_schema_for(session, connection, partitions)
            if connection.dialect.name == "sqlite":
                if not writing:
                    return await work(connection)
                await take_write_lock(connection)  # otherwise releasing the savepoint would commit
            async with connection.begin_nested():
                return await work(connection)
    except Exception as error:
        trouble = translated(error)
        if trouble is None:
            raise
        if connection.dialect.name in MYSQL_FAMILY and has_undone_all(error):
            await connection.invalidate()  # so that the caller's commit fails
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
            f"{trouble}; the commit failed, so the change may or may not be stored: "
            f"repeat the call, records that are already stored are skipped"
        ) from error


def _may_pass(trouble: StoreError, attempt: int, deadline: float) -> bool:
    """Return whether a retry can help: locks until the deadline, lost connections once.

    A pooled connection may be dead because the server restarted long ago. The first failure empties
    the pool, so the second attempt uses a new connection and shows the real state.
    """
    if isinstance(trouble, StoreBusy):
        return time.monotonic() < deadline
    return isinstance(trouble, StoreUnavailable) and attempt == 1


def _commits_each_statement(connection: AsyncConnection) -> bool:
    """Return whether a server connection is in autocommit mode. SQLite's begins explicitly."""
    if connection.dialect.name == "sqlite":
        return False
    of_engine = getattr(connection.dialect, "_on_connect_isolation_level", None)
    options = (
        connection.sync_connection.get_execution_options() if connection.sync_connection else {}
    )
    return options.get("isolation_level", of_engine) == "AUTOCOMMIT"
