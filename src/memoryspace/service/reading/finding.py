"""Searches: asks the index for candidates and reads them from the store."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace as change

from ...errors import InvalidInput
from ...record import MAX_MARKS, Scope, Where, is_number
from ...retrieval.hits import WhyNot
from ...retrieval.lessons import LESSON_KINDS
from ...store import stale_reads
from ..learning.lessons import LOOKED_AT, handed_over
from ..search import Found, Query, Searcher
from ..values.envelope import derived_mark
from ..values.forms import query_text
from ..values.kinds import FACT
from ..values.memory import RAW, MemoryItem, Said
from ..values.results import MemoryHit
from ..writing.repository import MemoryRepository
from .filters import CheckedFilters

_MAX_SEARCHES = 3  # while hits are being deleted or cannot be read


class Finding:
    """Searches a store for memories of ``kinds``, unless the filters name others."""

    def __init__(
        self,
        repository: MemoryRepository,
        searcher: Searcher,
        kinds: Sequence[str],
        *,
        with_facts: bool = False,
    ) -> None:
        self._repository = repository
        self._searcher = searcher
        self._kinds = tuple(kinds)
        self._with_facts = with_facts
        self._has_lessons = not LESSON_KINDS.isdisjoint(kinds)

    def query(
        self,
        said: Sequence[Said] | Said,
        checked: CheckedFilters,
        *,
        neighbours: bool = True,
        explain: bool = False,
        now: float | None = None,
    ) -> Query:
        """Return the query for the index."""
        if now is not None and not is_number(now):
            raise InvalidInput(f"now must be a number of seconds since 1970, got {now!r}")
        return Query(
            text=query_text(said),
            top_k=checked.hits,
            only=checked.condition(self._kinds),
            now=now,
            neighbours=neighbours,
            explain=explain,
        )

    async def hits(
        self, scope: Scope, query: Query, *, min_score: float | None = None
    ) -> list[MemoryHit]:
        """Return the best memories; if some cannot be read, the next best instead.

        Without ``min_score``, return all matches, but only lessons that concern the query.
        """
        if not query.text.strip():
            return []
        looked_at = LOOKED_AT if self._has_lessons else 1
        hits = await self._readable(scope, change(query, top_k=looked_at * query.top_k))
        return handed_over(hits, min_score)[: query.top_k]

    async def _readable(self, scope: Scope, query: Query) -> list[MemoryHit]:
        hits: list[MemoryHit] = []
        wanted = query
        for _ in range(_MAX_SEARCHES):
            found = await self._searcher.search(scope.user, wanted)
            with stale_reads():  # a replica of the database may answer
                hits = await self._read(scope, found)
            if len(hits) >= query.top_k or len(found) < wanted.top_k:
                break
            wanted = change(wanted, top_k=wanted.top_k + len(found) - len(hits))
        return hits[: query.top_k]

    async def why_not(self, scope: Scope, query: Query, memory_id: str) -> WhyNot:
        """Explain why a search does not return a memory, and what ranks above it."""
        memory = await self._repository.find(scope, memory_id)
        if memory is None:
            return WhyNot("unknown", f"user {scope.user!r} has no memory {memory_id!r}")
        if memory.is_waiting:
            return WhyNot("filtered", f"memory {memory_id!r} waits for approval; see waiting()")
        return await self._searcher.why_not(scope.user, query, memory.seq)

    async def _read(self, scope: Scope, found: Sequence[Found]) -> list[MemoryHit]:
        if not found:
            return []
        by_seq = {each.seq: each for each in await self._memories(scope, found)}
        facts = await self._facts(scope, [each.id for each in by_seq.values() if each.kind == RAW])
        hits = [
            MemoryHit(
                by_seq[each.seq],
                each.score,
                each.why,
                tuple(facts.get(each.id, ())),
                each.superseded_by,
                each.by_meaning,
            )
            for each in found
            if each.seq in by_seq
        ]
        return _said_once(hits) if self._with_facts else hits

    async def _memories(self, scope: Scope, found: Sequence[Found]) -> list[MemoryItem]:
        """Return the memories that were found, oldest first; read those that were not read."""
        records = [each.record for each in found if each.record is not None]
        if len(records) == len(found):
            return self._repository.read(scope.user, sorted(records, key=lambda each: each.seq))
        return await self._repository.select(scope, Where(ids=frozenset(e.id for e in found)))

    async def _facts(self, scope: Scope, ids: Sequence[str]) -> dict[str, list[MemoryItem]]:
        """Return the facts derived from each message, including those that no longer hold."""
        if not self._with_facts or not ids:
            return {}
        facts: dict[str, list[MemoryItem]] = {}
        for begin in range(0, len(ids), MAX_MARKS):
            some = ids[begin : begin + MAX_MARKS]
            where = Where(marks=frozenset(map(derived_mark, some)), kind=FACT)
            for each in await self._repository.select(scope, where):
                if each.origin is None or each.is_quarantined or each.is_waiting:
                    continue
                for source in set(some).intersection(each.origin.derived_from):
                    facts.setdefault(source, []).append(each)
        return facts


def _said_once(hits: Sequence[MemoryHit]) -> list[MemoryHit]:
    """Merge hits in which the same speaker said the same words."""
    found: dict[tuple[str, ...], MemoryHit] = {}
    for hit in hits:
        key = _words_of(hit.memory)
        best = found.setdefault(key, hit)
        if best is not hit:
            found[key] = change(best, repeated=(*best.repeated, hit.memory))
    return list(found.values())


def _words_of(memory: MemoryItem) -> tuple[str, ...]:
    if memory.kind != RAW:
        return (memory.id,)
    who = (memory.role or "", memory.name or "")
    return (*who, " ".join(memory.text.casefold().split()))
