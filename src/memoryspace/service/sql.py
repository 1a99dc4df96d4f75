"""``SQLMemoryService``: long-term memory in SQLite, PostgreSQL, MySQL or MariaDB."""

from __future__ import annotations

from typing import Literal

from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from ..errors import InvalidInput
from ..store.sql import SQLStore
from .deriving.contract import Deriver
from .envelope import entry_of
from .search import Searcher
from .settings import ServiceSettings
from .stored import StoredMemoryService


class SQLMemoryService(StoredMemoryService):
    """Memories in a relational database, for any number of processes.

    ``bind`` is an engine, which stays the caller's, or a URL. ``search`` says where the index is:
    ``"process"`` (each process holds those of the users it is asked for), or ``"server"``
    (PostgreSQL alone: full text and, where the extension exists, vectors in the database).
    """

    def __init__(
        self,
        bind: AsyncEngine | str,
        *,
        search: Literal["process", "server"] = "process",
        settings: ServiceSettings | None = None,
        deriver: Deriver | None = None,
    ) -> None:
        self._own_engine = create_async_engine(bind) if isinstance(bind, str) else None
        engine = bind if not isinstance(bind, str) else self._own_engine
        assert engine is not None  # one or the other
        settings = ServiceSettings() if settings is None else settings
        store = SQLStore(engine)
        searcher = _searcher(engine, store, search, settings)
        super().__init__(store, settings=settings, deriver=deriver, searcher=searcher)

    async def _let_go(self) -> None:
        await self.store.close()  # leaves a SQLite file complete
        if self._own_engine is not None:
            await self._own_engine.dispose()


def _searcher(
    engine: AsyncEngine, store: SQLStore, search: str, settings: ServiceSettings
) -> Searcher | None:
    if search == "process":
        return None
    if search != "server":
        raise InvalidInput(f'search must be "process" or "server", got {search!r}')
    if engine.dialect.name != "postgresql":
        raise InvalidInput(f'search="server" needs PostgreSQL, this is {engine.dialect.name}')
    from .search.postgres import PostgresSearcher

    return PostgresSearcher(
        engine,
        entry_of,
        embedder=settings.embedder,
        ranking=settings.ranking,
        reranker=settings.reranker,
        zone=settings.zone,
        clock=store.clock,
    )
