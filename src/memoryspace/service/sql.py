"""``SQLMemoryService``: long-term memory in SQLite, PostgreSQL, MySQL or MariaDB."""

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
    """Memories in a relational database, for any number of processes.

    ``bind`` is an engine, which stays the caller's, or an address such as
    ``postgresql://user:password@host/name``. ``search`` says where the index is: ``"process"``
    (each process holds those of the users it is asked for), or ``"server"`` (PostgreSQL alone: full
    text and, where the extension exists, vectors in the database).
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
        """Write a SQLite file anew, so that nothing deleted before is left in it or in its log.

        It takes time in proportion to the file, in which nobody can write. A server's files are its
        own: ``verify_erasure`` tells what rewrites these.
        """
        if not self._is_started:
            raise not_started(self)
        await self._sql_store.scrub()

    async def _let_go(self) -> None:
        await self.store.close()  # leaves a SQLite file complete, and an engine that was given open
