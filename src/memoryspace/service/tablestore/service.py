"""``TablestoreMemoryService``: long-term memory in Alibaba Cloud's Tablestore."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tablestore import VectorMetricType

from ...embedding import Embedder, best_embedder
from ...errors import InvalidInput
from ...store.tablestore.documents import Documents
from ...store.tablestore.embedding import Vectors
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
    """Memories in Tablestore, for any number of processes; searched by its search index.

    ``tablestore_client`` is an ``AsyncOTSClient``, which stays the caller's. Strategy
    ``FULL_TEXT`` needs no embedding model; ``VECTOR`` does: an ``Embedder`` (if none is given,
    the best one installed), or an object with ``embed_documents`` and ``embed_query``. Metadata
    items named in ``search_index_schema`` get columns of their own in the index. Tables that are
    not there are made by ``start``: one of the given name, and one of that name with ``_log``.
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
        vectors = Vectors(embedding_model, dimension) if is_by_vector else None
        settings = limited(settings, ttl_seconds, max_messages_per_session)
        store = TablestoreStore(tablestore_client, Documents(tablestore_client, layout, vectors))
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
            "the strategy VECTOR needs an embedding_model and none is installed; give one"
        )
    return embedder


def _dimension(given: int | None, model: Any) -> int:
    """Return how many numbers a vector has: as told, else as the embedder says, else upstream's."""
    if given is not None:
        return given
    return model.dimensions if isinstance(model, Embedder) else DIMENSION


def _strategy(given: SearchStrategy | str) -> SearchStrategy:
    try:
        return SearchStrategy(given)
    except ValueError as error:
        known = ", ".join(each.value for each in SearchStrategy)
        raise InvalidInput(f"the search strategy {given!r} is not known; use {known}") from error
