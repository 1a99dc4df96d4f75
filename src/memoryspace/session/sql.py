"""``SQLSession``: session states in a relational database."""

from __future__ import annotations

import time

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession

from ..store.contract import Clock
from ..store.sql.schema import states
from ..store.sql.statements import upsert
from ..store.sql.transactions import Transactions
from .base import SessionBase

NO_USER = ""


class SQLSession(SessionBase):
    """Stores states in the table ``memoryspace_state``, one row per session.

    Args:
        engine_or_session: An engine or a session of SQLAlchemy, used as in
            ``AsyncSQLAlchemyMemory``.
        clock: Source of the time at which a state was saved.
    """

    def __init__(
        self, engine_or_session: AsyncEngine | AsyncSession, *, clock: Clock = time.time
    ) -> None:
        self._transactions = Transactions(engine_or_session)
        self._clock = clock

    async def _write(self, session_id: str, user_id: str, text: str) -> None:
        values = {"state": text, "saved_at": self._clock()}
        row = {"user_id": user_id or NO_USER, "session_id": session_id, **values}

        async def work(on: AsyncConnection) -> None:
            await on.execute(upsert(on.dialect, states, row, values))

        await self._transactions.write(work)

    async def _read(self, session_id: str, user_id: str) -> str | None:
        query = select(states.c.state).where(
            states.c.user_id == (user_id or NO_USER), states.c.session_id == session_id
        )

        async def work(on: AsyncConnection) -> str | None:
            return (await on.execute(query)).scalar_one_or_none()

        return await self._transactions.read(work)
