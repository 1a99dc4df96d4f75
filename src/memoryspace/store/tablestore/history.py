"""``History``: users' ledgers, refreshed by one read and advanced by one conditional write.

Two writers, A and B, have read the same head. Both write a commit and its documents, which are not
visible yet. A moves the head from the stamp that both read to its own. B finds another stamp there,
removes its rows, reads again and makes a new plan. If the response to A is lost, A reads the head
and finds its own stamp in the chain, so it knows that it has won.
"""

from __future__ import annotations

from collections import OrderedDict

from ...errors import StoreBusy, StoreError
from .ledger import NOTHING, Commit, UserLedger, chain, decode, encode
from .table import HEAD, LogTable

MAX_HEADERS = 200_000  # held in this process; least recently used ledgers are dropped
_READS = 8  # attempts while others fold the history that is being read


class History:
    """The ledgers of users. The table is authoritative; ledgers are cached to read only changes."""

    def __init__(self, table: LogTable, *, max_headers: int = MAX_HEADERS) -> None:
        self.table = table
        self._max_headers = max_headers
        self._ledgers: OrderedDict[str, UserLedger] = OrderedDict()

    async def read(self, tenant: str) -> UserLedger:
        """Return a user's current ledger, including the writes of other processes."""
        ledger = self._held(tenant)
        for _ in range(_READS):
            known = ledger.stamp
            commits = await self._since(tenant, known)
            if commits is not None and ledger.stamp == known:  # else another task was faster
                self._follow(ledger, commits)
                return ledger
        raise StoreBusy("the user's history kept changing while it was read; try again")

    async def commit(self, tenant: str, ledger: UserLedger, commit: Commit, seen: int) -> bool:
        """Put a written commit into effect; return false if ``seen`` is no longer the last one.

        After an error the commit may or may not take effect, now or later: leave its rows alone.
        """
        base = commit.stamp if commit.previous is None else ledger.base
        try:
            if await self.table.move_head(tenant, seen, commit.stamp, base):
                if ledger.stamp == seen:
                    self._follow(ledger, [commit])
                return True
        except StoreError:
            if commit.stamp in (await self.read(tenant)).stamps:
                return True  # only the response was lost
            raise
        # The client may have sent it twice; then the first request made the second one fail.
        return commit.stamp in (await self.read(tenant)).stamps

    async def end(self, tenant: str, ledger: UserLedger, seen: int) -> bool:
        """Remove a user's head if ``seen`` is still the last commit."""
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
        """Return the commits after ``known``; ``None`` if they were folded during the read."""
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
        """Return the seqs that any commit before a stamp mentions, in effect or not."""
        rows = await self.table.commits(tenant, HEAD + 1, before)
        return {seq for data in rows.values() for seq in decode(data).mentioned}

    async def write(self, tenant: str, commit: Commit) -> None:
        """Write a commit, which is not in effect yet."""
        await self.table.put_commit(tenant, commit.stamp, encode(commit))

    def forget(self, tenant: str) -> None:
        """Drop a user's cached ledger."""
        self._ledgers.pop(tenant, None)

    def _held(self, tenant: str) -> UserLedger:
        ledger = self._ledgers.get(tenant)
        if ledger is None:
            while self._ledgers and self._count() >= self._max_headers:
                self._ledgers.popitem(last=False)
            ledger = self._ledgers[tenant] = UserLedger()
        self._ledgers.move_to_end(tenant)
        return ledger

    def _count(self) -> int:
        return sum(1 + len(ledger.headers) for ledger in self._ledgers.values())

    @staticmethod
    def _follow(ledger: UserLedger, commits: list[Commit]) -> None:
        for commit in commits:
            ledger.apply(commit)
