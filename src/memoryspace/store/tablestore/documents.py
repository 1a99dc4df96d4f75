"""``DocumentTable``: the searchable table, used through the knowledge store of the SDK.

Rows are written once and never changed, so reads need no coordination.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

from tablestore import Condition, DeleteRowItem, PutRowItem, Row, RowExistenceExpectation
from tablestore_for_agent_memory.base.base_knowledge_store import Document
from tablestore_for_agent_memory.knowledge.async_knowledge_store import AsyncKnowledgeStore

from ...errors import StoreError
from ...record import Record
from .embedding import Vectorizer
from .ledger import RecordHeader
from .rows import Layout, body_of, document_id, is_searched, key_of, row_of, schema_of, seq_of
from .table import write_rows
from .troubles import already_exists, keep_queries_out_of_logs, translated

READ_AT_ONCE = 100  # rows in one request
REQUESTS_AT_ONCE = 8
_TRIES = 3  # other processes may be creating the same tables

_ANY = Condition(RowExistenceExpectation.IGNORE)


class DocumentTable:
    """Write-once rows by user and seq. ``vectors`` embeds the texts, in a thread."""

    def __init__(self, client: Any, layout: Layout, vectors: Vectorizer | None = None) -> None:
        keep_queries_out_of_logs()
        self.layout = layout
        self._vectors = vectors
        self._client = client
        self.knowledge = AsyncKnowledgeStore(
            tablestore_client=client,
            vector_dimension=layout.vector_dimension,
            enable_multi_tenant=True,
            table_name=layout.table_name,
            search_index_name=layout.search_index_name,
            search_index_schema=schema_of(layout.search_index_schema),
            text_field=layout.text_field,
            embedding_field=layout.embedding_field,
            vector_metric_type=layout.vector_metric_type,
        )

    async def create(self) -> None:
        """Create the table and its index if they are missing."""
        for _ in range(_TRIES):
            if await self._has_index():
                return
            try:
                with translated():
                    await self.knowledge.init_table()
            except StoreError as error:
                if not already_exists(error):
                    raise

    async def _has_index(self) -> bool:
        table = self.layout.table_name
        with translated():
            if table not in await self._client.list_table():
                return False
            indexes = await self._client.list_search_index(table)
        return self.layout.search_index_name in [name for _, name in indexes]

    async def rows(self, tenant: str, records: Sequence[Record]) -> list[Row]:
        """Return records as rows, with vectors for the searchable ones. Nothing is written."""
        bodies = [body_of(record) for record in records]
        searched = [record for record in records if is_searched(record)]
        vectors = await self._vectors_of([record.text for record in searched])
        vector_of = dict(zip((record.seq for record in searched), vectors, strict=False))
        return [
            row_of(self.layout, tenant, record, body, vector_of.get(record.seq))
            for record, body in zip(records, bodies, strict=True)
        ]

    async def put(self, rows: Sequence[Row]) -> None:
        """Write the rows that ``rows`` returned."""
        items = [PutRowItem(row, _ANY) for row in rows]
        await write_rows(self._client, self.layout.table_name, items)

    async def get(self, tenant: str, headers: Sequence[RecordHeader]) -> dict[int, Document]:
        """Return the existing documents of headers, by seq."""
        seqs = [header.seq for header in headers]
        slices = [seqs[at : at + READ_AT_ONCE] for at in range(0, len(seqs), READ_AT_ONCE)]
        found: dict[int, Document] = {}
        for at in range(0, len(slices), REQUESTS_AT_ONCE):
            reads = (self._read(tenant, each) for each in slices[at : at + REQUESTS_AT_ONCE])
            for documents in await asyncio.gather(*reads):
                found.update(documents)
        return found

    async def remove(self, tenant: str, seqs: Iterable[int]) -> None:
        """Delete documents; missing ones are ignored."""
        items = [DeleteRowItem(Row(key_of(tenant, seq)), _ANY) for seq in sorted(seqs)]
        await write_rows(self._client, self.layout.table_name, items)

    async def existing(self, tenant: str, seqs: Sequence[int]) -> int:
        """Return how many of these documents exist."""
        slices = [seqs[at : at + READ_AT_ONCE] for at in range(0, len(seqs), READ_AT_ONCE)]
        return sum([len(await self._read(tenant, each)) for each in slices])

    async def vector(self, text: str) -> list[float]:
        """Return the vector of a question."""
        assert self._vectors is not None  # the strategy is VECTOR
        return (await asyncio.to_thread(self._vectors.of_questions, [text]))[0]

    async def _vectors_of(self, texts: list[str]) -> list[list[float]]:
        if self._vectors is None or not texts:
            return []
        return await asyncio.to_thread(self._vectors.of_texts, texts)

    async def _read(self, tenant: str, seqs: Sequence[int]) -> dict[int, Document]:
        try:
            with translated():
                documents = await self.knowledge.get_documents(
                    [document_id(seq) for seq in seqs], tenant
                )
        except ValueError as error:  # raised by the SDK if single rows cannot be read
            raise StoreError("Tablestore could not read some of the rows; try again") from error
        return {seq_of(each.document_id): each for each in documents if each is not None}
