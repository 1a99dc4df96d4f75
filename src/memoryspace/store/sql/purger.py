"""``Purger``: deletes a store's expired rows in the background."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from types import TracebackType
from typing import Self

from ...errors import InvalidInput, StoreError
from .store import PURGED_AT_ONCE, SQLStore

logger = logging.getLogger(__name__)


class Purger:
    """Purges a store every so often, for as long as it is open.

    Run one in each process, or in one of them: only one works at a time. Each purge that deletes
    something emits the event ``purged``. If the database is away, the next round tries again.

    Args:
        store: The store, which the caller closes.
        every: The seconds between two purges.
        at_once: The most rows to delete before others get their turn.

    Raises:
        InvalidInput: A number is not positive.

    Example::

        async with SQLStore("sqlite:///memory.db") as store, Purger(store, every=300):
            await store.append(Scope("alice", "s1"), [Record("r1", "Tea.", kind="note")])
    """

    def __init__(
        self, store: SQLStore, *, every: float = 60.0, at_once: int = PURGED_AT_ONCE
    ) -> None:
        if every <= 0:
            raise InvalidInput(f"every must be a positive number of seconds, got {every!r}")
        self._store, self._every, self._at_once = store, every, at_once
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start purging. The first purge is due at once."""
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Stop, after the current transaction has ended."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    async def _run(self) -> None:
        while True:
            try:
                await self._store.purge(at_once=self._at_once)
            except StoreError as error:
                logger.warning("expired records stay until the next purge: %s", error)
            await asyncio.sleep(self._every)
