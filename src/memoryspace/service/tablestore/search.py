"""``TablestoreSearcher``: the search index selects candidates, and the table decides.

Candidates that the store no longer has are dropped; records that are not indexed yet take part.
This process holds no index, only how far each user's records are indexed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, tzinfo
from enum import Enum
from functools import partial

from ...errors import CorruptData
from ...record import Scope
from ...retrieval.conditions import refusal
from ...retrieval.hits import WhyNot
from ...retrieval.ranking import Ranking, Reranker
from ...retrieval.recall import Recall
from ...store.tablestore.ledger import RecordHeader
from ...store.tablestore.rows import record_from, tenant_of
from ...store.tablestore.store import TablestoreStore
from ..search import Found, Query, Searcher
from ..values.envelope import entry_of
from .finding import MAX_NEAREST, Finder, around
from .ranking import SearchCandidate, by_meaning, by_words, why_not_by_meaning, why_not_by_words

CANDIDATES = 50  # at least
PER_HIT = 2  # candidates for each requested result
MAX_PAGES = 20  # pages of the index that are read while a condition rejects candidates
REACH = 2  # neighbours that are read on each side of a match


class SearchStrategy(str, Enum):  # noqa: UP042  # formats as its name, as users of it know it
    """What a search compares: words or vectors."""

    FULL_TEXT = "full_text"
    VECTOR = "vector"


class TablestoreSearcher(Searcher):
    """Searches a ``TablestoreStore`` through its search index.

    Args:
        store: The store to search.
        strategy: Whether to compare words or vectors.
        ranking: As for ``Recall``; for words only.
        reranker: As for ``Recall``; for words only.
        zone: As for ``Recall``; for words only.
    """

    def __init__(
        self,
        store: TablestoreStore,
        strategy: SearchStrategy = SearchStrategy.FULL_TEXT,
        *,
        ranking: Ranking | None = None,
        reranker: Reranker | None = None,
        zone: tzinfo = UTC,
    ) -> None:
        self._store = store
        self._documents = store.documents
        self._strategy = strategy
        self._finder = Finder(store.documents)
        self._metric = store.documents.layout.vector_metric_type
        self._make_recall: Callable[[], Recall] = partial(
            Recall,
            embedder=None,
            ranking=ranking,
            reranker=reranker,
            zone=zone,
            clock=store.clock,
        )

    async def search(self, user: str, query: Query) -> list[Found]:
        """Return a user's best matches, best first, ties newest first."""
        headers = await self._headers(user)
        if not headers or not query.text.strip():
            return []
        if self._strategy is SearchStrategy.VECTOR:
            vector = await self._documents.vector(query.text)
            near = await self._candidates_by_vector(user, query, headers, vector)
            return by_meaning(near, query, vector, self._metric)[: query.top_k]
        pool = await self._candidates_by_words(user, query, headers)
        return await asyncio.to_thread(by_words, self._make_recall, pool, query)

    async def why_not(self, user: str, query: Query, seq: int) -> WhyNot:
        """Return why a search does not return a memory."""
        headers = await self._headers(user)
        wanted = await self._read(user, [seq] if seq in headers else [], headers)
        if not wanted:
            return WhyNot("unknown", f"no searchable memory has the seq {seq}")
        if self._strategy is SearchStrategy.VECTOR:
            vector = await self._documents.vector(query.text)
            near = await self._candidates_by_vector(user, query, headers, vector) | wanted
            ranked = by_meaning(near, query, vector, self._metric)
            return why_not_by_meaning(near, ranked, query, seq)
        pool = await self._candidates_by_words(user, query, headers) | wanted
        return await asyncio.to_thread(why_not_by_words, self._make_recall, pool, query, seq)

    async def forget(self, user: str) -> None:
        """Drop what is remembered of a user, and rows that crashed writers left behind."""
        self._finder.forget(tenant_of(user))
        await self._store.sweep(user)

    async def traces(self, user: str) -> int:
        """Return how many rows of a user in either table belong to no live record."""
        tenant = tenant_of(user)
        live = {header.seq for header in await self._store.live_headers(user)}
        named = [seq for seq in await self._finder.everything(tenant) if seq not in live]
        left = await self._documents.existing(tenant, named)
        return left + (0 if live else await self._store.log.count_rows(tenant))

    async def close(self) -> None:
        """Drop the remembered indexing progress of all users."""
        self._finder.clear()

    async def _headers(self, user: str) -> dict[int, RecordHeader]:
        live = await self._store.live_headers(user)
        return {header.seq: header for header in live if header.is_searched}

    async def _candidates_by_words(
        self, user: str, query: Query, headers: Mapping[int, RecordHeader]
    ) -> dict[int, SearchCandidate]:
        """Return candidates that share words with the question, with neighbours if requested."""
        tenant, wanted = tenant_of(user), max(CANDIDATES, PER_HIT * query.top_k)
        pool = await self._unseen(user, headers)
        token: str | None = None
        for _ in range(MAX_PAGES):
            seqs, token = await self._finder.by_words(
                tenant, query.text, query.only, limit=wanted, token=token
            )
            pool |= await self._read(user, seqs, headers)
            if token is None or _allowed(pool, query) >= wanted:
                break
        if query.neighbours:
            pool |= await self._read(user, around(pool, headers, REACH) - pool.keys(), headers)
        return pool

    async def _candidates_by_vector(
        self, user: str, query: Query, headers: Mapping[int, RecordHeader], vector: list[float]
    ) -> dict[int, SearchCandidate]:
        """Return candidates near the question; read more while a condition rejects too many."""
        tenant, limit = tenant_of(user), max(CANDIDATES, PER_HIT * query.top_k)
        pool = await self._unseen(user, headers)
        while True:
            seqs = await self._finder.by_meaning(tenant, vector, query.only, limit=limit)
            pool |= await self._read(user, set(seqs) - pool.keys(), headers)
            is_all = len(seqs) < limit or limit >= MAX_NEAREST
            if is_all or _allowed(pool, query) >= query.top_k:
                return pool
            limit = min(4 * limit, MAX_NEAREST)

    async def _unseen(
        self, user: str, headers: Mapping[int, RecordHeader]
    ) -> dict[int, SearchCandidate]:
        unseen = await self._finder.unseen(tenant_of(user), headers)
        return await self._read(user, [header.seq for header in unseen], headers)

    async def _read(
        self, user: str, seqs: Collection[int], headers: Mapping[int, RecordHeader]
    ) -> dict[int, SearchCandidate]:
        """Read candidates. Records that are not live, or not memories, are skipped."""
        chosen = [headers[seq] for seq in seqs if seq in headers]
        documents = await self._documents.get(tenant_of(user), chosen)
        found = {}
        for header in chosen:
            document = documents.get(header.seq)
            if document is None:  # deleted meanwhile; the service searches again
                continue
            try:
                entry = entry_of(record_from(header, document))
            except CorruptData as error:
                self._store.report_corrupt(Scope(user, header.session), header.id, error)
                continue
            if entry is not None:
                found[header.seq] = SearchCandidate(
                    header.seq, header.id, header.session, entry, document.embedding
                )
        return found


def _allowed(pool: Mapping[int, SearchCandidate], query: Query) -> int:
    return sum(refusal(query.only, each.entry) is None for each in pool.values())
