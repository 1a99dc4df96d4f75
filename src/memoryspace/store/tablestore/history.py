"""``History``: users' ledgers, brought up to date by one read, moved on by one conditional write.

Two writers, A and B, have read the same head. Both write a commit, and documents beside it, that
nobody sees yet. A moves the head from the stamp that both read to its own; B finds another stamp
there, takes its rows back, reads again and decides anew. If A's answer is lost on the way, A reads
the head and finds its own stamp in the chain: it knows that it has won.
"""

from __future__ import annotations

from collections import OrderedDict

from ...errors import StoreBusy, StoreError
from .ledger import NOTHING, Commit, Ledger, chain, decode, encode
from .table import HEAD, LogTable

MAX_HEADERS = 200_000  # held in this process; users not asked for lately make room
_READS = 8  # while others fold the history that is being read


class History:
    """What users have. The table is the truth; ledgers are kept to read only what is new."""

    def __init__(self, table: LogTable, *, max_headers: int = MAX_HEADERS) -> None:
        self.table = table
        self._max_headers = max_headers
        self._ledgers: OrderedDict[str, Ledger] = OrderedDict()

    async def read(self, tenant: str) -> Ledger:
        """Return a user's ledger as it is now, whoever wrote last."""
        ledger = self._held(tenant)
        for _ in range(_READS):
            known = ledger.stamp
            commits = await self._since(tenant, known)
            if commits is not None and ledger.stamp == known:  # else somebody here was quicker
                self._follow(ledger, commits)
                return ledger
        raise StoreBusy("other writers kept changing what was to be read; try again")

    async def commit(self, tenant: str, ledger: Ledger, commit: Commit, seen: int) -> bool:
        """Let a written commit count if ``seen`` still is the last one; else somebody was quicker.

        An error means that it may count or not, now or later: its rows must be left alone.
        """
        base = commit.stamp if commit.previous is None else ledger.base
        try:
            if await self.table.move_head(tenant, seen, commit.stamp, base):
                if ledger.stamp == seen:
                    self._follow(ledger, [commit])
                return True
        except StoreError:
            if commit.stamp in (await self.read(tenant)).stamps:
                return True  # only the answer was lost
            raise
        # The client may have sent it twice, and been refused by what the first one did.
        return commit.stamp in (await self.read(tenant)).stamps

    async def end(self, tenant: str, ledger: Ledger, seen: int) -> bool:
        """Let a user have nothing if ``seen`` still is the last commit."""
        try:
            is_done = await self.table.drop_head(tenant, seen)
        except StoreError:
            if await self.table.head(tenant) is not None:
                raise
            is_done = True
        if is_done and ledger.stamp == seen:
            ledger.clear()
        return is_done

    async def _since(self, tenant: str, known: int) -> list[Commit] | None:
        """Return what came after ``known``; ``None`` if it was folded while it was read."""
        head = await self.table.head(tenant)
        if head is None:
            return [] if known == 0 else [NOTHING]
        last, base = head
        if last == known:
            return []
        begin = known if base <= known < last else 0
        rows = await self.table.commits(tenant, max(begin + 1, base), last + 1)
        return chain(rows, last, begin)

    async def mentioned(self, tenant: str, before: int) -> set[int]:
        """Return the seqs that any commit before a stamp is about, counted or not."""
        rows = await self.table.commits(tenant, HEAD + 1, before)
        return {seq for data in rows.values() for seq in decode(data).mentioned}

    async def write(self, tenant: str, commit: Commit) -> None:
        """Write a commit down; it does not count yet."""
        await self.table.put_commit(tenant, commit.stamp, encode(commit))

    def forget(self, tenant: str) -> None:
        """Hold nothing of a user here."""
        self._ledgers.pop(tenant, None)

    def _held(self, tenant: str) -> Ledger:
        ledger = self._ledgers.get(tenant)
        if ledger is None:
            while self._ledgers and self._count() >= self._max_headers:
                self._ledgers.popitem(last=False)
            ledger = self._ledgers[tenant] = Ledger()
        self._ledgers.move_to_end(tenant)
        return ledger

    def _count(self) -> int:
        return sum(1 + len(ledger.headers) for ledger in self._ledgers.values())

    @staticmethod
    def _follow(ledger: Ledger, commits: list[Commit]) -> None:
        for commit in commits:
            ledger.apply(commit)
