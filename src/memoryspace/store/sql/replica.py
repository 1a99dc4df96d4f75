"""``Replica``: reads from a PostgreSQL hot standby that show a user everything this process wrote.

After a write, the primary's position in its log is an upper bound of where that write stands. It is
asked for at the user's next read, so that writes cost nothing more. The replica answers if it has
replayed its log up to there. If it has not, if it is down, or if it takes too long, the caller
reads from the primary.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import TypeAlias, TypeVar

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from ...errors import InvalidInput, StoreBusy
from .errors import translated

logger = logging.getLogger(__name__)
T = TypeVar("T")
Work: TypeAlias = Callable[[AsyncConnection], Awaitable[T]]
OnSkip: TypeAlias = Callable[[str, str], object]

PATIENCE_SECONDS = 5.0  # for one read
REST_SECONDS = 5.0  # before a replica that failed is asked again
MOST_USERS = 10_000  # whose last write is remembered one by one

_WRITTEN = text("SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint")
_REPLAYED = text("SELECT (pg_last_wal_replay_lsn() - '0/0'::pg_lsn)::bigint")


class CannotServe(Exception):
    """The replica cannot answer this read; ``str`` says why: "behind", "busy" or "down"."""


class _Mark:
    """A user's last write. ``position`` is None until the primary was asked for it."""

    __slots__ = ("position",)

    def __init__(self) -> None:
        self.position: int | None = None


class Replica:
    """A replica of a primary, and what it must have replayed to serve each user.

    Args:
        engine: The replica.
        primary: The server that is written to.
        on_skip: Called with the user and the reason when a read goes to the primary instead.
        clock: Returns a time in seconds that never goes back.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        primary: AsyncEngine,
        *,
        on_skip: OnSkip,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if engine.dialect.name != "postgresql":
            raise InvalidInput(f"only PostgreSQL has replicas here, got {engine.dialect.name}")
        self._engine, self._primary = engine, primary
        self._on_skip, self._clock = on_skip, clock
        self._marks: OrderedDict[str, _Mark] = OrderedDict()
        self._forgotten: _Mark | None = None  # a write of a user that is no longer remembered
        self._replayed = 0  # at least
        self._rests_until = 0.0
        self.served = 0  # reads that the replica answered

    def wrote(self, user: str) -> None:
        """Note that this process wrote for a user, or may have."""
        self._marks[user] = _Mark()
        self._marks.move_to_end(user)
        if len(self._marks) > MOST_USERS:
            self._marks.popitem(last=False)
            self._forgotten = _Mark()  # whoever reads next waits for this moment's position

    async def read(self, user: str, work: Work[T]) -> T:
        """Run ``work`` on the replica; raise ``CannotServe`` if it must run on the primary."""
        if self._clock() < self._rests_until:
            raise self._skipped(user, "down")
        needed = await self._needed(user)
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                found = await self._read(user, needed, work)
        except Exception as error:
            raise self._failed(user, error) from error
        self.served += 1
        return found

    async def _read(self, user: str, needed: int, work: Work[T]) -> T:
        async with self._engine.connect() as on:
            if needed > self._replayed:
                self._replayed = int((await on.execute(_REPLAYED)).scalar() or 0)
                if needed > self._replayed:
                    raise CannotServe("behind")
            self._settle(user, needed)
            return await work(on)

    async def _needed(self, user: str) -> int:
        """Return the position that the replica must have replayed."""
        found = 0
        for mark in (self._marks.get(user), self._forgotten):
            if mark is not None:
                if mark.position is None:  # written only here, so a later write has its own mark
                    mark.position = await self._position()
                found = max(found, mark.position)
        return found

    async def _position(self) -> int:
        async with self._primary.connect() as on:
            return int((await on.execute(_WRITTEN)).scalar_one())

    def _settle(self, user: str, needed: int) -> None:
        """Forget a write that has been replayed."""
        mark = self._marks.get(user)
        if mark is not None and mark.position is not None and mark.position <= needed:
            del self._marks[user]

    def _failed(self, user: str, error: Exception) -> Exception:
        """Return what to raise for an error of the replica."""
        if isinstance(error, CannotServe):
            return self._skipped(user, str(error))
        trouble = translated(error)
        if trouble is None and not isinstance(error, TimeoutError):
            return error
        if isinstance(trouble, StoreBusy):  # a conflict with what it replays
            return self._skipped(user, "busy")
        logger.warning("reading from the primary: the replica failed: %s", trouble or "too slow")
        self._rests_until = self._clock() + REST_SECONDS
        self._replayed = 0  # it may come back as another one
        return self._skipped(user, "down")

    def _skipped(self, user: str, reason: str) -> CannotServe:
        self._on_skip(user, reason)
        return CannotServe(reason)

    def __repr__(self) -> str:
        return f"Replica(served={self.served})"
