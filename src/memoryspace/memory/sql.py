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
    """The table of stored messages, for custom queries. ``index`` is the order."""

    __table__ = _records


class AsyncSQLAlchemyMemory(StoredMemory):
    """Working memory in a relational database.

    With an engine, every call commits at once. With a session, a call joins the caller's open
    transaction and leaves the commit to the caller; if none is open, it commits at once on its own
    connection. A session or engine passed in is never committed, rolled back or closed here. Tables
    are created when first needed.

    Args:
        engine_or_session: An async engine or session of SQLAlchemy.
        session_id: The session of the user.
        user_id: The user the messages belong to.

    Raises:
        InvalidInput: The first argument is a URL instead of an engine.

    Example::

        engine = create_async_engine("sqlite+aiosqlite:///memory.db")
        memory = AsyncSQLAlchemyMemory(engine, user_id="alice", session_id="garden")
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
                "pass create_async_engine(url), and dispose of that engine when done"
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
        """A session for custom queries: the one passed in, or one that ``close`` closes."""
        if isinstance(self._bind, AsyncSession):
            return self._bind
        if self._own_session is None:
            self._own_session = AsyncSession(self._bind, expire_on_commit=False)
        return self._own_session

    async def close(self) -> None:
        """Close what this memory opened. It reopens when the memory is used again."""
        if self._own_session is not None:
            await self._own_session.close()
            self._own_session = None
        await super().close()
