"""``TablestoreMemoryService``: long-term memory in Alibaba Cloud's Tablestore."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tablestore import VectorMetricType

from ...embedding import Embedder, best_embedder
from ...errors import InvalidInput
from ...store.tablestore.documents import DocumentTable
from ...store.tablestore.embedding import Vectorizer
from ...store.tablestore.rows import Layout
from ...store.tablestore.store import TablestoreStore
from ..deriving.contract import Deriver
from ..settings import ServiceSettings, limited
from ..stored import StoredMemoryService
from .search import SearchStrategy, TablestoreSearcher

TABLE = "agentscope_runtime_memory"
INDEX = "memoryspace_search_index"
DIMENSION = 1536  # of a model that does not say


class TablestoreMemoryService(StoredMemoryService):
    """Long-term memory in Tablestore, shared by any number of processes.

    ``start`` creates missing tables: one with the given name and one with that name and ``_log``.

    Args:
        tablestore_client: An ``AsyncOTSClient``. The caller closes it.
        search_strategy: ``FULL_TEXT`` searches words, ``VECTOR`` compares vectors.
        embedding_model: For ``VECTOR``: an ``Embedder``, or an object with ``embed_documents`` and
            ``embed_query``. By default the best embedder installed.
        vector_dimension: The length of the vectors, if the model does not state it.
        table_name: The table of the documents.
        search_index_schema: Fields of the index. Metadata items with these names get columns.
        text_field: The name of the text column.
        embedding_field: The name of the vector column.
        vector_metric_type: How vectors are compared.
        search_index_name: The name of the index.
        ttl_seconds: How long a memory is kept.
        max_messages_per_session: How many messages of a session are kept.
        settings: The settings of the service.
        deriver: Derives memories from messages.
        derivers: Several of them.

    Raises:
        InvalidInput: If the strategy is unknown, or it needs an embedding model and there is none.

    Example:
        async with TablestoreMemoryService(client) as service:
            await service.add_memory("ann", "I live in Rome")
    """

    def __init__(
        self,
        tablestore_client: Any,
        search_strategy: SearchStrategy | str = SearchStrategy.FULL_TEXT,
        embedding_model: Any = None,
        vector_dimension: int | None = None,
        table_name: str = TABLE,
        search_index_schema: Sequence[Any] = (),
        text_field: str = "text",
        embedding_field: str = "embedding",
        vector_metric_type: VectorMetricType = VectorMetricType.VM_COSINE,
        *,
        search_index_name: str = INDEX,
        ttl_seconds: float | None = None,
        max_messages_per_session: int | None = None,
        settings: ServiceSettings | None = None,
        deriver: Deriver | None = None,
        derivers: Sequence[Deriver] = (),
    ) -> None:
        strategy = _strategy(search_strategy)
        if strategy is SearchStrategy.VECTOR and embedding_model is None:
            embedding_model = _best_installed()
        dimension = _dimension(vector_dimension, embedding_model)
        layout = Layout(
            table_name=table_name,
            search_index_name=search_index_name,
            vector_dimension=dimension,
            search_index_schema=tuple(search_index_schema),
            text_field=text_field,
            embedding_field=embedding_field,
            vector_metric_type=vector_metric_type,
        )
        is_by_vector = strategy is SearchStrategy.VECTOR
        vectors = Vectorizer(embedding_model, dimension) if is_by_vector else None
        settings = limited(settings, ttl_seconds, max_messages_per_session)
        store = TablestoreStore(
            tablestore_client, DocumentTable(tablestore_client, layout, vectors)
        )
        searcher = TablestoreSearcher(
            store,
            strategy,
            ranking=settings.ranking,
            reranker=settings.reranker,
            zone=settings.zone,
        )
        super().__init__(
            store, settings=settings, deriver=deriver, derivers=derivers, searcher=searcher
        )


def _best_installed() -> Embedder:
    embedder = best_embedder()
    if embedder is None:
        raise InvalidInput(
            "the strategy VECTOR needs an embedding model and none is installed: pass "
            "embedding_model="
        )
    return embedder


def _dimension(given: int | None, model: Any) -> int:
    """Return the length of a vector: as given, else the embedder's, else AgentScope's default."""
    if given is not None:
        return given
    return model.dimensions if isinstance(model, Embedder) else DIMENSION


def _strategy(given: SearchStrategy | str) -> SearchStrategy:
    try:
        return SearchStrategy(given)
    except ValueError as error:
        known = ", ".join(each.value for each in SearchStrategy)
        raise InvalidInput(f"unknown search strategy {given!r}: use one of {known}") from error
