"""``TablestoreStore``: records in Tablestore. Every verb is atomic, though a server row is the most
that Tablestore itself changes at once: see ``ledger`` for how.

Reads and writes go by primary keys and are strongly consistent. The search index, which lags
behind, is not asked here.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Collection, Sequence
from typing import Any

from msgspec.structs import replace as change

from ...errors import CorruptData, StoreBusy
from ...events import EventStream
from ...loops import PerLoop, finish
from ...record import EVERYTHING, Record, Scope, Where, as_marks
from ..contract import Changes, Clock, Store, admit, session_of
from ..users import (
    USERS_AT_ONCE,
    UserPage,
    checked_limit,
    cursor_after,
    user_before,
)
from .documents import Documents
from .history import History
from .ledger import Header, Ledger
from .rows import is_user, record_from, tenant_of, user_of
from .table import LogTable
from .writing import Plan, Seen, Writer

MAX_ATTEMPTS = 50
BACKOFF_SECONDS = 0.01
_READS = 5  # while what was chosen is being deleted


_Decide = Callable[[Ledger], Plan]


class TablestoreStore(Store):
    """Records in two tables of a Tablestore instance; the client stays the caller's.

    Any number of processes may write. Writers of the same user wait for each other, so a user's
    records become visible in the order of their seqs. One event loop at a time.
    """

    def __init__(
        self,
        client: Any,
        documents: Documents,
        *,
        clock: Clock = time.time,
        events: EventStream | None = None,
    ) -> None:
        super().__init__(clock=clock, events=events)
        self.documents = documents
        self.log = LogTable(client, f"{documents.layout.table_name}_log")
        self._history = History(self.log)
        self._writer = Writer(self.log, self._history, documents, clock)
        self._is_ready = False
        self._opening = PerLoop(asyncio.Lock)
        self._turns: PerLoop[dict[str, asyncio.Lock]] = PerLoop(dict)

    @property
    def is_durable(self) -> bool:
        """What Tablestore acknowledges is on several disks."""
        return True

    async def append(self, scope: Scope, records: Sequence[Record]) -> list[str]:
        return await self.replace(scope, Where(ids=frozenset()), records)

    async def replace(
        self, scope: Scope, where: Where, records: Sequence[Record], *, if_found: bool = False
    ) -> list[str]:
        session, new = session_of(scope), admit(records)

        def decide(ledger: Ledger) -> Plan:
            now = self.clock()
            removed = ledger.choose(scope, where, now)
            if if_found and not removed:
                return Plan([])
            gone = {header.seq for header in removed}
            added, marked = [], []
            for record in new:
                known = ledger.find(session, record.id, now)
                if known is None or known.seq in gone:
                    added.append(change(record, session=session))
                elif not record.marks <= known.marks:
                    marked.append((known.seq, known.marks | record.marks))
            return Plan([record.id for record in added], added, removed, marked)

        answer: list[str] = await self._write(scope, decide)
        return answer

    async def mark(
        self, scope: Scope, where: Where, *, add: Collection[str] = (), remove: Collection[str] = ()
    ) -> int:
        put_on, take_off = as_marks(frozenset(add)), as_marks(frozenset(remove))

        def decide(ledger: Ledger) -> Plan:
            new = {
                header.seq: (header.marks - take_off) | put_on
                for header in ledger.choose(scope, where, self.clock())
            }
            marked = [(seq, each) for seq, each in new.items() if each != ledger.headers[seq].marks]
            return Plan(len(marked), marked=marked)

        answer: int = await self._write(scope, decide)
        return answer

    async def delete(self, scope: Scope, where: Where = EVERYTHING) -> list[str]:
        def decide(ledger: Ledger) -> Plan:
            removed = ledger.choose(scope, where, self.clock())
            return Plan([header.id for header in removed], removed=removed)

        answer: list[str] = await self._write(scope, decide)
        return answer

    async def select(self, scope: Scope, where: Where = EVERYTHING) -> list[Record]:
        return await self._read(scope, lambda ledger: ledger.choose(scope, where, self.clock()))

    async def count(self, scope: Scope, where: Where = EVERYTHING) -> int:
        return len((await self._ledger(scope.user)).choose(scope, where, self.clock()))

    async def sessions(self, user: str) -> list[str]:
        return sorted({header.session for header in await self.living(user)})

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

        def choose(ledger: Ledger) -> list[Header]:
            now.clear()
            living = ledger.choose(Scope(user), EVERYTHING, self.clock())
            for header in living:
                now.setdefault(header.session, {})[header.id] = header.seq
            return [header for header in living if header.seq not in known]

        records = await self._read(Scope(user), choose)
        kept = {
            session: dict(now[session])
            for session, ids in before.items()
            if session in now and not ids.items() <= now[session].items()
        }
        return Changes(now, records, kept, frozenset(before.keys() - now.keys()))

    async def living(self, user: str) -> list[Header]:
        """Return the headers of all living records of a user, in conversation order."""
        return (await self._ledger(user)).choose(Scope(user), EVERYTHING, self.clock())

    async def open(self) -> None:
        """Make the tables that are not there; every verb does so first."""
        async with self._opening.get():
            if not self._is_ready:
                await self.log.create()
                await self.documents.create()
                self._is_ready = True

    async def sweep(self, user: str) -> None:
        """Delete what is left of a user who has nothing: by crashed writers, or past its time."""
        tenant = tenant_of(user)
        async with self._turn(tenant):
            ledger = await self._ledger(user)
            is_empty = not ledger.choose(Scope(user), Where(limit=1), self.clock())
            if is_empty and (ledger.stamp or await self.log.count_rows(tenant)):
                # A head that says "nothing" keeps out whoever is about to write the first commit.
                await self._writer.fold(tenant, ledger)
        self._history.forget(tenant)

    async def _ledger(self, user: str) -> Ledger:
        if not self._is_ready:
            await self.open()
        return await self._history.read(tenant_of(user))

    async def _read(self, scope: Scope, choose: Callable[[Ledger], list[Header]]) -> list[Record]:
        """Read what is chosen; if some of it is gone meanwhile, choose again."""
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
        """The one door for writes: decide on what is there, and do it only if it still is."""
        tenant = tenant_of(scope.user)
        async with self._turn(tenant):
            for attempt in range(MAX_ATTEMPTS):
                ledger = await self._ledger(scope.user)
                plan, seen = decide(ledger), self._seen(ledger)
                if plan.is_idle or await finish(self._writer.carry_out(tenant, ledger, plan, seen)):
                    return plan.answer
                await asyncio.sleep(random.uniform(0, BACKOFF_SECONDS * min(attempt + 1, 10)))
        raise StoreBusy(f"other writers of user {scope.user!r} were quicker each time; try again")

    def _seen(self, ledger: Ledger) -> Seen:
        expired = [header.seq for header in ledger.expired(self.clock())]
        return Seen(ledger.stamp, expired, len(ledger.headers))

    def _turn(self, tenant: str) -> asyncio.Lock:
        """Return the lock of a user, so that this process does not race against itself."""
        turns = self._turns.get()
        if len(turns) > 1000:
            for name in [name for name, lock in turns.items() if not lock.locked()]:
                del turns[name]
        return turns.setdefault(tenant, asyncio.Lock())
