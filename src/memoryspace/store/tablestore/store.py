"""``TablestoreStore``: records in Tablestore.

Every operation is atomic, although Tablestore itself changes only single rows atomically: see
``ledger``. Reads and writes use primary keys and are strongly consistent. The search index, which
lags behind, is not used here.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Sequence
from typing import Any

from msgspec.structs import replace as change

from ...errors import CorruptData, StoreBusy
from ...events import EventStream
from ...loops import PerLoop, finish
from ...record import EVERYTHING, Record, Scope, Where, as_marks
from ...retrying import Attempts, Backoff
from ..contract import Changes, Clock, Store, admit, session_of
from ..users import (
    USERS_AT_ONCE,
    UserPage,
    checked_limit,
    cursor_after,
    user_before,
)
from .documents import DocumentTable
from .history import History
from .ledger import RecordHeader, UserLedger
from .rows import is_user, record_from, tenant_of, user_of
from .table import LogTable
from .writing import CommitWriter, ReadState, WritePlan

_BACKOFF = Backoff(first=0.01, longest=0.1, attempts=50)
_READS = 5  # attempts while selected records are being deleted


_Decide = Callable[[UserLedger], WritePlan]


class TablestoreStore(Store):
    """Records in two tables of a Tablestore instance.

    Any number of processes may write. Writers of the same user wait for each other, so a user's
    records become visible in the order of their seqs. One event loop at a time.

    Args:
        client: An ``AsyncOTSClient``. The caller closes it.
        documents: The table of documents.
        clock: Decides what has expired.
        events: Where events are emitted.
    """

    def __init__(
        self,
        client: Any,
        documents: DocumentTable,
        *,
        clock: Clock = time.time,
        events: EventStream | None = None,
    ) -> None:
        super().__init__(clock=clock, events=events)
        self.documents = documents
        self.log = LogTable(client, f"{documents.layout.table_name}_log")
        self._history = History(self.log)
        self._writer = CommitWriter(self.log, self._history, documents, clock)
        self._is_ready = False
        self._opening = PerLoop(asyncio.Lock)
        self._locks: PerLoop[dict[str, asyncio.Lock]] = PerLoop(dict)

    @property
    def is_durable(self) -> bool:
        """Always true: Tablestore acknowledges a write once it is on several disks."""
        return True

    async def append(self, scope: Scope, records: Sequence[Record]) -> list[str]:
        return await self.replace(scope, Where(ids=frozenset()), records)

    async def replace(
        self, scope: Scope, where: Where, records: Sequence[Record], *, if_found: bool = False
    ) -> list[str]:
        session, new = session_of(scope), admit(records)

        def decide(ledger: UserLedger) -> WritePlan:
            now = self.clock()
            removed = ledger.choose(scope, where, now)
            if if_found and not removed:
                return WritePlan([])
            gone = {header.seq for header in removed}
            added, marked = [], []
            for record in new:
                known = ledger.find(session, record.id, now)
                if known is None or known.seq in gone:
                    added.append(change(record, session=session))
                elif not record.marks <= known.marks:
                    marked.append((known.seq, known.marks | record.marks))
            return WritePlan([record.id for record in added], added, removed, marked)

        answer: list[str] = await self._write(scope, decide)
        return answer

    async def mark(
        self, scope: Scope, where: Where, *, add: Collection[str] = (), remove: Collection[str] = ()
    ) -> int:
        put_on, take_off = as_marks(frozenset(add)), as_marks(frozenset(remove))

        def decide(ledger: UserLedger) -> WritePlan:
            new = {
                header.seq: (header.marks - take_off) | put_on
                for header in ledger.choose(scope, where, self.clock())
            }
            marked = [(seq, each) for seq, each in new.items() if each != ledger.headers[seq].marks]
            return WritePlan(len(marked), marked=marked)

        answer: int = await self._write(scope, decide)
        return answer

    async def delete(self, scope: Scope, where: Where = EVERYTHING) -> list[str]:
        def decide(ledger: UserLedger) -> WritePlan:
            removed = ledger.choose(scope, where, self.clock())
            return WritePlan([header.id for header in removed], removed=removed)

        answer: list[str] = await self._write(scope, decide)
        return answer

    async def select(self, scope: Scope, where: Where = EVERYTHING) -> list[Record]:
        return await self._read(scope, lambda ledger: ledger.choose(scope, where, self.clock()))

    async def count(self, scope: Scope, where: Where = EVERYTHING) -> int:
        return len((await self._ledger(scope.user)).choose(scope, where, self.clock()))

    async def sessions(self, user: str) -> list[str]:
        return sorted({header.session for header in await self.live_headers(user)})

    async def users(self, *, cursor: str | None = None, limit: int = USERS_AT_ONCE) -> UserPage:
        if not self._is_ready:
            await self.open()
        tenant = tenant_of(user_before(cursor))
        found: list[str] = []
        for _ in range(checked_limit(limit)):
            onward = await self.log.next_tenant(tenant)
            if onward is None or not is_user(onward):
                return UserPage(tuple(found))
            tenant, user = onward, user_of(onward)
            if (await self._ledger(user)).choose(Scope(user), Where(limit=1), self.clock()):
                found.append(user)
        return UserPage(tuple(found), cursor_after(user_of(tenant)))

    async def changes(self, user: str, state: Any = None) -> Changes:
        before: dict[str, dict[str, int]] = {} if state is None else state
        known = {seq for ids in before.values() for seq in ids.values()}
        now: dict[str, dict[str, int]] = {}

        def choose(ledger: UserLedger) -> list[RecordHeader]:
            now.clear()
            live = ledger.choose(Scope(user), EVERYTHING, self.clock())
            for header in live:
                now.setdefault(header.session, {})[header.id] = header.seq
            return [header for header in live if header.seq not in known]

        records = await self._read(Scope(user), choose)
        kept = {
            session: dict(now[session])
            for session, ids in before.items()
            if session in now and not ids.items() <= now[session].items()
        }
        return Changes(now, records, kept, frozenset(before.keys() - now.keys()))

    async def live_headers(self, user: str) -> list[RecordHeader]:
        """Return the headers of all live records of a user, in conversation order."""
        return (await self._ledger(user)).choose(Scope(user), EVERYTHING, self.clock())

    async def open(self) -> None:
        """Create missing tables. Every operation does this first."""
        async with self._opening.get():
            if not self._is_ready:
                await self.log.create()
                await self.documents.create()
                self._is_ready = True

    async def sweep(self, user: str) -> None:
        """Delete the leftovers of a user without live records: expired or uncommitted rows."""
        tenant = tenant_of(user)
        async with self._lock_of(tenant):
            ledger = await self._ledger(user)
            is_empty = not ledger.choose(Scope(user), Where(limit=1), self.clock())
            if is_empty and (ledger.stamp or await self.log.count_rows(tenant)):
                # An empty head makes a concurrent writer of a first commit fail.
                await self._writer.fold(tenant, ledger)
        self._history.forget(tenant)

    async def _ledger(self, user: str) -> UserLedger:
        if not self._is_ready:
            await self.open()
        return await self._history.read(tenant_of(user))

    async def _read(
        self, scope: Scope, choose: Callable[[UserLedger], list[RecordHeader]]
    ) -> list[Record]:
        """Read the chosen records; choose again if some were deleted meanwhile."""
        for attempt in range(_READS):
            chosen = choose(await self._ledger(scope.user))
            found = await self.documents.get(tenant_of(scope.user), chosen)
            if len(found) == len(chosen) or attempt == _READS - 1:
                break
        records = []
        for header in chosen:
            try:
                if header.seq not in found:
                    raise CorruptData("its row is gone")
                records.append(record_from(header, found[header.seq]))
            except CorruptData as error:
                self.report_corrupt(Scope(scope.user, header.session), header.id, error)
        return records

    async def _write(self, scope: Scope, decide: _Decide) -> Any:
        """Make a plan and execute it if the state is unchanged. Every write goes through here."""
        tenant = tenant_of(scope.user)
        async with self._lock_of(tenant):
            async for _ in Attempts(_BACKOFF):
                ledger = await self._ledger(scope.user)
                plan, seen = decide(ledger), self._seen(ledger)
                if plan.is_idle or await finish(self._writer.execute(tenant, ledger, plan, seen)):
                    return plan.answer
        raise StoreBusy(f"other writers of user {scope.user!r} were faster each time; try again")

    def _seen(self, ledger: UserLedger) -> ReadState:
        expired = [header.seq for header in ledger.expired(self.clock())]
        return ReadState(ledger.stamp, expired, len(ledger.headers))

    def _lock_of(self, tenant: str) -> asyncio.Lock:
        """Return a user's lock, which keeps this process from racing against itself."""
        locks = self._locks.get()
        if len(locks) > 1000:
            for name in [name for name, lock in locks.items() if not lock.locked()]:
                del locks[name]
        return locks.setdefault(tenant, asyncio.Lock())
