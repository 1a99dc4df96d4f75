"""``KnownMemories``: a deriver's read access to one user's memory.

It shows only memories that still hold, none in quarantine, and no secrets. Those that wait for
approval are among them, as if they were approved: so what is derived next fits whichever of them
will be. With ``is_approved`` it shows only what is approved.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ...record import Scope, Where
from ...retrieval import Only
from ...retrieval.conditions import AllOf, AnyOf
from ..review.lineage import Lineage
from ..search import Query, Searcher
from ..values.kinds import SUPERSEDED
from ..values.memory import QUARANTINED, WAITING, MemoryItem
from ..writing.repository import MemoryRepository
from ..writing.secrecy import without_secrets
from .similarity import similarity

_OUT = frozenset({QUARANTINED, SUPERSEDED})
_LOOKED_AT = 4  # candidates per result: the best search hits need not be the most similar texts


class KnownMemories:
    """One user's memories as a deriver sees them; implements ``Known``."""

    def __init__(
        self,
        user: str,
        repository: MemoryRepository,
        searcher: Searcher,
        *,
        is_approved: bool = False,
    ) -> None:
        self._scope = Scope(user)
        self._repository = repository
        self._searcher = searcher
        self._out = _OUT | {WAITING} if is_approved else _OUT
        self.seen: dict[str, MemoryItem] = {}  # memories read so far, as stored

    async def similar(
        self, text: str, *, kinds: Sequence[str], top_k: int = 5
    ) -> list[tuple[MemoryItem, float]]:
        """Return memories similar to a text, most similar first."""
        if not text.strip() or not kinds:
            return []
        only = AllOf((AnyOf(tuple(Only(kind=kind) for kind in kinds)), Only(without=_OUT)))
        found = await self._searcher.search(
            self._scope.user, Query(text=text, top_k=top_k * _LOOKED_AT, only=only)
        )
        memories = await self._read({each.seq: each.id for each in found})
        memories += [each for each in await self._waiting() if each.kind in kinds]
        rated = [(each, similarity(text, each.text)) for each in memories]
        rated.sort(key=lambda pair: (-pair[1], -pair[0].seq))
        return rated[:top_k]

    async def of_kind(self, kind: str, *, limit: int = 1000) -> list[MemoryItem]:
        """Return the newest memories of a kind, oldest first."""
        where = Where(kind=kind, without=self._out, limit=limit, newest=True)
        return await self._select(where)

    async def _waiting(self) -> list[MemoryItem]:
        """Return the memories that wait; no index has them."""
        if WAITING in self._out:
            return []
        return await self._select(Where(marks=frozenset({WAITING}), without=_OUT))

    async def there(self, memory_ids: Collection[str]) -> set[str]:
        """Return which of these memories exist, whatever their state."""
        where = Where(ids=frozenset(memory_ids))
        return {each.id for each in await self._repository.store.select(self._scope, where)}

    async def get(self, memory_id: str) -> MemoryItem | None:
        """Return a memory, or ``None`` if it is missing, superseded or in quarantine."""
        found = await self._repository.find(self._scope, memory_id)
        return None if found is None or found.marks & self._out else _clean(found)

    async def _read(self, ids: Mapping[int, str]) -> list[MemoryItem]:
        """Return memories by seq, without reading any of them twice."""
        known = {each.seq: each for each in self.seen.values()}
        if ids.keys() <= known.keys():
            return [_clean(known[seq]) for seq in ids]
        found = await self._select(Where(ids=frozenset(ids.values())))
        return [each for each in found if each.seq in ids]

    async def _select(self, where: Where) -> list[MemoryItem]:
        found = await self._repository.select(self._scope, where)
        if WAITING not in self._out and any(each.is_waiting for each in found):
            lineage = await Lineage.read(self._repository, self._scope.user)
            found = [each for each in found if not lineage.is_outdated(each)]
        self.seen.update((each.id, each) for each in found)
        return list(map(_clean, found))


def _clean(memory: MemoryItem) -> MemoryItem:
    return without_secrets([memory])[0] if memory.holds_secret else memory
