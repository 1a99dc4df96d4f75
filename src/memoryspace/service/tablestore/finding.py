"""``Finder``: finds candidates in the search index and among records it does not have yet.

The index lags behind the table by seconds or more. Each search also asks which of the user's newest
records are indexed, and reads the others from the table. So every record that was acknowledged
before a search takes part in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tablestore_for_agent_memory.base.filter import Filters

from ...retrieval.conditions import AllOf, AnyOf, Condition, Item
from ...retrieval.entries import Only, names
from ...store.codec import clean_text
from ...store.tablestore.documents import DocumentTable
from ...store.tablestore.ledger import RecordHeader
from ...store.tablestore.rows import KIND, SEQ, seq_of, with_stems
from ...store.tablestore.troubles import translated

WINDOW = 500  # newest records that are looked up in the index at once
MAX_UNSEEN = 5000  # newest records that are read beside the index
MAX_USERS = 100_000  # users whose indexing progress is remembered
MAX_PAGE = 1000
MAX_NEAREST = 500
MAX_QUESTION = 4000  # characters of a question that are sent to the index

_FIELDS = {"session": "session_id", "kind": KIND}


class Finder:
    """Queries the index through the knowledge store of ``tablestore_for_agent_memory``."""

    def __init__(self, documents: DocumentTable) -> None:
        self._knowledge = documents.knowledge
        self._own = documents.layout.own_fields
        self._indexed_up_to: dict[str, int] = {}  # tenant → the seq up to which all is indexed

    async def by_words(
        self, tenant: str, text: str, only: Condition, *, limit: int, token: str | None = None
    ) -> tuple[list[int], str | None]:
        """Return a page of seqs whose text shares words with the question, and the next token."""
        with translated():
            response = await self._knowledge.full_text_search(
                query=with_stems(clean_text(text[:MAX_QUESTION])),
                tenant_id=tenant,
                metadata_filter=self.narrowing(only),
                limit=min(limit, MAX_PAGE),
                next_token=token,
                meta_data_to_get=[SEQ],
            )
        return _seqs(response.hits), response.next_token

    async def by_meaning(
        self, tenant: str, vector: list[float], only: Condition, *, limit: int
    ) -> list[int]:
        """Return the seqs of the nearest vectors."""
        most = min(limit, MAX_NEAREST)
        with translated():
            response = await self._knowledge.vector_search(
                query_vector=vector,
                top_k=most,
                tenant_id=tenant,
                metadata_filter=self.narrowing(only),
                limit=most,
                meta_data_to_get=[SEQ],
            )
        return _seqs(response.hits)

    async def unseen(self, tenant: str, headers: Mapping[int, RecordHeader]) -> list[RecordHeader]:
        """Return the newest records that are not indexed yet.

        A window that is indexed completely ends the search: older records were indexed before.
        """
        known = self._indexed_up_to.get(tenant, 0)
        newer = sorted((seq for seq in headers if seq > known), reverse=True)
        missing: list[int] = []
        is_complete = len(newer) <= MAX_UNSEEN
        for at in range(0, min(len(newer), MAX_UNSEEN), WINDOW):
            window = newer[at : at + WINDOW]
            seen = await self._between(tenant, window[-1], window[0])
            unknown = [seq for seq in window if seq not in seen]
            missing += unknown
            if not unknown:
                is_complete = True
                break
        if newer and is_complete:
            self._set_indexed(tenant, min(missing) - 1 if missing else newer[0])
        return [headers[seq] for seq in sorted(missing)]

    async def everything(self, tenant: str) -> list[int]:
        """Return every seq of a user in the index, whether the record still exists or not."""
        return sorted(await self._between(tenant, 0, 2**62))

    def forget(self, tenant: str) -> None:
        """Drop what is remembered of a user."""
        self._indexed_up_to.pop(tenant, None)

    def clear(self) -> None:
        """Drop what is remembered of all users."""
        self._indexed_up_to.clear()

    def narrowing(self, condition: Condition) -> Any:
        """Return the part of a condition that the index can check, or ``None``.

        It never excludes a match.
        """
        parts = self._parts(condition)
        return None if not parts else parts[0] if len(parts) == 1 else Filters.logical_and(parts)

    def _parts(self, condition: Condition) -> list[Any]:
        if isinstance(condition, Only):
            return [
                Filters.In(field, sorted(names(wanted)))
                for name, field in _FIELDS.items()
                if (wanted := getattr(condition, name)) is not None
            ]
        if isinstance(condition, AllOf):
            return [part for each in condition.parts for part in self._parts(each)]
        if isinstance(condition, AnyOf):
            choices = [self.narrowing(each) for each in condition.parts]
            return [Filters.logical_or(choices)] if choices and None not in choices else []
        if isinstance(condition, Item) and self._is_indexed(condition):
            return [Filters.eq(condition.key, condition.value)]
        return []

    def _is_indexed(self, item: Item) -> bool:
        """Return whether an index field of the caller finds exactly what the item requires."""
        kind = {str: "KEYWORD", bool: "BOOLEAN"}.get(type(item.value))
        has_field = kind is not None and self._own.get(item.key) == kind
        return has_field and item.op == "eq" and item.value != ""

    def _set_indexed(self, tenant: str, seq: int) -> None:
        if len(self._indexed_up_to) > MAX_USERS:
            self._indexed_up_to.clear()
        self._indexed_up_to[tenant] = seq

    async def _between(self, tenant: str, low: int, high: int) -> set[int]:
        span = Filters.logical_and([Filters.gte(SEQ, low), Filters.lte(SEQ, high)])
        found: set[int] = set()
        token: str | None = None
        while True:
            with translated():
                response = await self._knowledge.search_documents(
                    tenant_id=tenant,
                    metadata_filter=span,
                    limit=MAX_PAGE,
                    next_token=token,
                    meta_data_to_get=[SEQ],
                )
            found.update(_seqs(response.hits))
            token = response.next_token
            if token is None:
                return found


def around(chosen: Iterable[int], headers: Mapping[int, RecordHeader], reach: int) -> set[int]:
    """Return the chosen seqs and those up to ``reach`` places away in the same session."""
    sessions: dict[str, list[int]] = {}
    for seq, header in headers.items():
        sessions.setdefault(header.session, []).append(seq)
    places = {seq: at for seqs in sessions.values() for at, seq in enumerate(seqs)}
    found: set[int] = set()
    for seq in chosen:
        seqs, at = sessions[headers[seq].session], places[seq]
        found.update(seqs[max(0, at - reach) : at + reach + 1])
    return found


def _seqs(hits: Sequence[Any]) -> list[int]:
    return [seq_of(hit.document.document_id) for hit in hits]
