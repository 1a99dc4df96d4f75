"""A custom store backend: implement a few methods, and every memory class runs on it.

This one wraps a ``MemoryStore`` and keeps a journal of all writes. At the end it runs the contract
suites that check a backend.
"""

import asyncio
from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

from memoryspace import MemoryStore, Msg, Record, Scope, Store, Where
from memoryspace.memory import StoredMemory
from memoryspace.record import EVERYTHING
from memoryspace.store import UserPage
from memoryspace.testing import MEMORY_CONTRACT, STORE_CONTRACT, StoreMaker


class JournalingStore(Store):
    """Forwards every call to a ``MemoryStore`` and records the writes."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.journal: list[str] = []
        self._inner = MemoryStore(**options)

    async def append(self, scope: Scope, records: Sequence[Record]) -> list[str]:
        """Append records."""
        added = await self._inner.append(scope, records)
        self.journal.append(f"append {len(added)} for {scope.user}")
        return added

    async def select(self, scope: Scope, where: Where = EVERYTHING) -> list[Record]:
        """Return records."""
        return await self._inner.select(scope, where)

    async def replace(
        self, scope: Scope, where: Where, records: Sequence[Record], *, if_found: bool = False
    ) -> list[str]:
        """Delete and append records in one step."""
        self.journal.append(f"replace for {scope.user}")
        return await self._inner.replace(scope, where, records, if_found=if_found)

    async def mark(
        self, scope: Scope, where: Where, *, add: Collection[str] = (), remove: Collection[str] = ()
    ) -> int:
        """Change marks."""
        changed = await self._inner.mark(scope, where, add=add, remove=remove)
        self.journal.append(f"mark {changed} for {scope.user}")
        return changed

    async def delete(self, scope: Scope, where: Where = EVERYTHING) -> list[str]:
        """Delete records."""
        removed = await self._inner.delete(scope, where)
        self.journal.append(f"delete {len(removed)} for {scope.user}")
        return removed

    async def count(self, scope: Scope, where: Where = EVERYTHING) -> int:
        """Count records."""
        return await self._inner.count(scope, where)

    async def users(self, *, cursor: str | None = None, limit: int = 100) -> UserPage:
        """Return a page of the users that have records."""
        return await self._inner.users(cursor=cursor, limit=limit)


def memory_on(store: Store, user_id: str, session_id: str) -> StoredMemory:
    """Return a working memory on a store."""
    return StoredMemory(store, Scope(user_id, session_id))


def one_store() -> StoreMaker:
    """Return a factory of stores on the same data: always the same store, unless it has options."""
    store = JournalingStore()
    return lambda **options: JournalingStore(**options) if options else store


async def main() -> None:
    """Run the example."""
    store = JournalingStore()
    memory = StoredMemory(store, Scope("alice", "today"))
    await memory.add(Msg("Alice", "Remember the milk.", "user"), marks="todo")
    await memory.delete_by_mark("todo")
    print(*store.journal, sep="\n")

    for store_check in STORE_CONTRACT:
        await store_check(one_store())
    for memory_check in MEMORY_CONTRACT:
        store = JournalingStore()
        await memory_check(partial(memory_on, store))
    print(f"{len(STORE_CONTRACT) + len(MEMORY_CONTRACT)} checks of the two contracts passed")


if __name__ == "__main__":
    asyncio.run(main())
