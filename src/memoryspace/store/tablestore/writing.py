"""``CommitWriter``: turns a plan into a commit, and deletes the rows that become obsolete.

Rows are written first. They take effect when the head names their commit. Obsolete rows are deleted
last. A crash in between leaves invisible rows and a commit that lists them; the next fold of the
history deletes them.
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
from .documents import DocumentTable
from .history import History
from .ledger import Commit, RecordHeader, UserLedger
from .rows import is_searched
from .table import LogTable

logger = logging.getLogger(__name__)

_SLACK = 64  # obsolete lines of history that are tolerated before a fold


class ReadState(Struct, frozen=True):
    """The state that a plan is based on. The plan is void once another commit is the last."""

    stamp: int
    expired: list[int]
    count: int


class WritePlan(Struct, frozen=True):
    """The changes that an operation makes to a ledger, and its return value."""

    answer: Any
    added: list[Record] = []
    removed: list[RecordHeader] = []
    marked: list[tuple[int, frozenset[str]]] = []

    @property
    def is_idle(self) -> bool:
        """Whether the plan changes nothing."""
        return not (self.added or self.removed or self.marked)


class CommitWriter:
    """Executes plans, one at a time."""

    def __init__(
        self, log: LogTable, history: History, documents: DocumentTable, clock: Clock
    ) -> None:
        self._log = log
        self._history = history
        self._documents = documents
        self._clock = clock

    async def execute(
        self, tenant: str, ledger: UserLedger, plan: WritePlan, seen: ReadState
    ) -> bool:
        """Execute a plan in one step; return false and do nothing if its state is outdated."""
        removed = sorted({*seen.expired, *(header.seq for header in plan.removed)})
        stamp = await self._reserve(seen.stamp, max(1, len(plan.added)))
        if not plan.added and len(removed) == seen.count:
            return await self._clear_user(tenant, ledger, seen.stamp, stamp)
        first = stamp - len(plan.added) + 1
        records = [change(each, seq=first + place) for place, each in enumerate(plan.added)]
        rows = await self._documents.rows(tenant, records)
        previous = seen.stamp if seen.stamp else None
        added = [_header(record) for record in records]
        marked = [each for each in plan.marked if each[0] not in seen.expired]
        commit = Commit(stamp, previous, added, removed, marked)
        await self._history.write(tenant, commit)  # first: it lists the rows that may exist
        await self._documents.put(rows)
        if not await self._history.commit(tenant, ledger, commit, seen.stamp):
            await self._roll_back(tenant, commit)
            return False
        await self._tidy(tenant, ledger, removed)
        return True

    async def _tidy(self, tenant: str, ledger: UserLedger, removed: Sequence[int]) -> None:
        """Delete obsolete rows. A later fold deletes those that fail here."""
        try:
            await self._documents.remove(tenant, removed)
            if ledger.lines > 2 * len(ledger.headers) + _SLACK:
                await self.fold(tenant, ledger)
        except StoreError as error:
            logger.info("obsolete rows could not be deleted yet: %s", error)

    async def _roll_back(self, tenant: str, commit: Commit) -> None:
        try:
            await self._documents.remove(tenant, [header.seq for header in commit.added])
            await self._log.remove_commits(tenant, commit.stamp, commit.stamp + 1)
        except StoreError as error:
            logger.info("uncommitted rows could not be deleted yet: %s", error)

    async def fold(self, tenant: str, ledger: UserLedger) -> None:
        """Replace the history with one commit of the live records, and delete the older ones."""
        seen, now = ledger.stamp, self._clock()
        live = [header for header in ledger.headers.values() if header.is_live(now)]
        stamp = await self._reserve(seen, 1)
        commit = Commit(stamp, None, live)
        await self._history.write(tenant, commit)
        if not await self._history.commit(tenant, ledger, commit, seen):
            await self._log.remove_commits(tenant, stamp, stamp + 1)
            return
        await self._vacuum(tenant, stamp, {header.seq for header in live})
        if not live:
            await self._clear_user(tenant, ledger, stamp, await self._reserve(stamp, 1))

    async def _clear_user(self, tenant: str, ledger: UserLedger, seen: int, stamp: int) -> bool:
        """Remove everything of a user; ``stamp`` is above all stamps under the old head."""
        if not await self._history.end(tenant, ledger, seen):
            return False
        try:
            await self._vacuum(tenant, stamp, set())
        except StoreError as error:
            logger.info("obsolete rows could not be deleted yet: %s", error)
        return True

    async def _vacuum(self, tenant: str, before: int, live: set[int]) -> None:
        """Delete the commits before a stamp and every row they mention that is not live.

        An uncommitted one among them can no longer succeed: the head has moved on.
        """
        gone = await self._history.mentioned(tenant, before) - live
        await self._documents.remove(tenant, gone)
        await self._log.remove_commits(tenant, 1, before)

    async def _reserve(self, above: int, count: int) -> int:
        """Return the last of ``count`` new numbers. Read the head before."""
        return await self._log.reserve(count, above) + count - 1


def _header(record: Record) -> RecordHeader:
    assert record.session is not None  # set by the caller
    return RecordHeader(
        record.seq,
        record.session,
        record.id,
        record.kind,
        record.marks,
        record.expires_at,
        is_searched(record),
    )
