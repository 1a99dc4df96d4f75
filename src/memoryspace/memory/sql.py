"""``AsyncSQLAlchemyMemory``: working memory in SQLite, PostgreSQL, MySQL or MariaDB."""

from __future__ import annotations

from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession
from sqlalchemy.orm import DeclarativeBase

from ..errors import InvalidInput
from ..record import Scope
from ..store.sql import SQLStore
from ..store.sql.schema import metadata as _metadata
from ..store.sql.schema import records as _records
from .in_memory import DEFAULT_SESSION, DEFAULT_USER
from .stored import StoredMemory


class _Base(DeclarativeBase):
    metadata = _metadata


class MessageTable(_Base):
    """The table of stored messages, for queries of one's own: ``index`` is the order."""

    __table__ = _records


class AsyncSQLAlchemyMemory(StoredMemory):
    """Working memory in a relational database.

    Given an engine, every call is committed at once. Given a session, a call joins the caller's
    open transaction and leaves committing to the caller; where none is open it is committed at
    once, on a connection of its own. A session or engine that was passed in is never committed,
    rolled back or closed here. Tables are created when first needed.
    """

    MessageTable = MessageTable

    def __init__(
        self,
        engine_or_session: AsyncEngine | AsyncSession,
        session_id: str | None = None,
        user_id: str | None = None,
    ) -> None:
        if isinstance(engine_or_session, str):
            raise InvalidInput(
                "expected an AsyncEngine or an AsyncSession, got a str; "
                "pass create_async_engine() of it, and dispose of that engine when done"
            )
        scope = Scope(
            DEFAULT_USER if user_id is None else user_id,
            DEFAULT_SESSION if session_id is None else session_id,
        )
        super().__init__(SQLStore(engine_or_session), scope)
        self._bind = engine_or_session
        self._own_session: AsyncSession | None = None

    @property
    def session(self) -> AsyncSession:
        """A session for queries of one's own: the one passed in, or one that ``close`` closes."""
        if isinstance(self._bind, AsyncSession):
            return self._bind
        if self._own_session is None:
            self._own_session = AsyncSession(self._bind, expire_on_commit=False)
        return self._own_session

    async def close(self) -> None:
        """Close what was opened here; the memory opens it anew when used again."""
        if self._own_session is not None:
            await self._own_session.close()
            self._own_session = None
        await super().close()
