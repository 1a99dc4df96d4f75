"""``SQLMemoryService``: a memory service in SQLite, PostgreSQL, MySQL or MariaDB."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy.ext.asyncio import AsyncEngine

from ..store.sql import SQLStore
from .deriving.contract import Deriver
from .reading.arguments import not_started
from .search.opening import SearchPlace
from .settings import ServiceSettings
from .stored import StoredMemoryService


class SQLMemoryService(StoredMemoryService):
    """A memory service in a relational database, for any number of processes.

    Args:
        bind: An engine, which the caller disposes of, or an address such as
            ``postgresql://user:password@host/name``.
        search: Where the index is: ``"process"`` (each process indexes the users it searches), or
            ``"server"`` (PostgreSQL only: full text and, with pgvector, vectors in the database).
        settings: How to search, what to accept and how long to keep it.
        deriver: A single deriver, short for ``derivers=[deriver]``.
        derivers: What makes memories from messages, such as ``PersonalDeriver()``.

    Example::

        async with SQLMemoryService("sqlite:///memories.db") as service:
            await service.add_memory("ann", ["I live in Oslo"])
    """

    def __init__(
        self,
        bind: AsyncEngine | str,
        *,
        search: SearchPlace = "process",
        settings: ServiceSettings | None = None,
        deriver: Deriver | None = None,
        derivers: Sequence[Deriver] = (),
    ) -> None:
        self._sql_store = SQLStore(bind)
        super().__init__(
            self._sql_store, settings=settings, deriver=deriver, derivers=derivers, search=search
        )

    async def scrub(self) -> None:
        """Rewrite a SQLite file so that no deleted data is left in it or in its log.

        This takes time in proportion to the size of the file and blocks writers. For a database
        server, ``verify_erasure`` says which of its commands rewrite its files.

        Raises:
            NotStarted: The service is not running.
        """
        if not self._is_started:
            raise not_started(self)
        await self._sql_store.scrub()

    async def _let_go(self) -> None:
        await (
            self.store.close()
        )  # completes a SQLite file; leaves an engine that was passed in open
