"""``Writer``: how a plan becomes a commit, and what is swept up behind it.

Rows are written first and count afterwards, when the head names their commit; rows that no longer
count are deleted last. A crash in between leaves rows that nobody sees, and a commit that says
which they are: whoever folds the history next deletes them.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace as change

from ...errors import StoreError
from ...record import Record
from ..contract import Clock
from .documents import Documents
from .history import History
from .ledger import Commit, Header, Ledger
from .rows import is_searched
from .table import LogTable

logger = logging.getLogger(__name__)

_SLACK = 64  # lines of history that may be there beside those that say what is


class Seen(Struct, frozen=True):
    """What a decision rests on: if another commit is the last by then, it is void."""

    stamp: int
    expired: list[int]
    count: int


class Plan(Struct, frozen=True):
    """What a verb does to a ledger, and what it answers then."""

    answer: Any
    added: list[Record] = []
    removed: list[Header] = []
    marked: list[tuple[int, frozenset[str]]] = []

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to do."""
        return not (self.added or self.removed or self.marked)


class Writer:
    """Carries out plans, one step at a time."""

    def __init__(self, log: LogTable, history: History, documents: Documents, clock: Clock) -> None:
        self._log = log
        self._history = history
        self._documents = documents
        self._clock = clock

    async def carry_out(self, tenant: str, ledger: Ledger, plan: Plan, seen: Seen) -> bool:
        """Do what was planned on what was seen, in one step; nothing if that is outdated."""
        removed = sorted({*seen.expired, *(header.seq for header in plan.removed)})
        stamp = await self._reserve(seen.stamp, max(1, len(plan.added)))
        if not plan.added and len(removed) == seen.count:
            return await self._end(tenant, ledger, seen.stamp, stamp)
        first = stamp - len(plan.added) + 1
        records = [change(each, seq=first + place) for place, each in enumerate(plan.added)]
        rows = await self._documents.rows(tenant, records)
        previous = seen.stamp if seen.stamp else None
        added = [_header(record) for record in records]
        marked = [each for each in plan.marked if each[0] not in seen.expired]
        commit = Commit(stamp, previous, added, removed, marked)
        await self._history.write(tenant, commit)  # first: it says which rows may be there
        await self._documents.put(rows)
        if not await self._history.commit(tenant, ledger, commit, seen.stamp):
            await self._take_back(tenant, commit)
            return False
        await self._tidy(tenant, ledger, removed)
        return True

    async def _tidy(self, tenant: str, ledger: Ledger, removed: Sequence[int]) -> None:
        """Delete rows that no longer count. Folding comes back to what fails here."""
        try:
            await self._documents.remove(tenant, removed)
            if ledger.lines > 2 * len(ledger.headers) + _SLACK:
                await self.fold(tenant, ledger)
        except StoreError as error:
            logger.info("rows that no longer count could not be deleted yet: %s", error)

    async def _take_back(self, tenant: str, commit: Commit) -> None:
        try:
            await self._documents.remove(tenant, [header.seq for header in commit.added])
            await self._log.remove_commits(tenant, commit.stamp, commit.stamp + 1)
        except StoreError as error:
            logger.info("rows that never counted could not be deleted yet: %s", error)

    async def fold(self, tenant: str, ledger: Ledger) -> None:
        """Let the history begin anew with what is there now, and delete what led to it."""
        seen, now = ledger.stamp, self._clock()
        living = [header for header in ledger.headers.values() if header.is_living(now)]
        stamp = await self._reserve(seen, 1)
        commit = Commit(stamp, None, living)
        await self._history.write(tenant, commit)
        if not await self._history.commit(tenant, ledger, commit, seen):
            await self._log.remove_commits(tenant, stamp, stamp + 1)
            return
        await self._vacuum(tenant, stamp, {header.seq for header in living})
        if not living:
            await self._end(tenant, ledger, stamp, await self._reserve(stamp, 1))

    async def _end(self, tenant: str, ledger: Ledger, seen: int, stamp: int) -> bool:
        """Let a user have nothing; ``stamp`` is above all that was written under the old head."""
        if not await self._history.end(tenant, ledger, seen):
            return False
        try:
            await self._vacuum(tenant, stamp, set())
        except StoreError as error:
            logger.info("rows that no longer count could not be deleted yet: %s", error)
        return True

    async def _vacuum(self, tenant: str, before: int, living: set[int]) -> None:
        """Delete the commits before a stamp and every row they mention that is not living.

        Whoever wrote one of them without it counting has lost: the head has moved on.
        """
        gone = await self._history.mentioned(tenant, before) - living
        await self._documents.remove(tenant, gone)
        await self._log.remove_commits(tenant, 1, before)

    async def _reserve(self, above: int, count: int) -> int:
        """Return the last of ``count`` new numbers. The head must have been read before."""
        return await self._log.reserve(count, above) + count - 1


def _header(record: Record) -> Header:
    assert record.session is not None  # was given above
    return Header(
        record.seq,
        record.session,
        record.id,
        record.kind,
        record.marks,
        record.expires_at,
        is_searched(record),
    )
