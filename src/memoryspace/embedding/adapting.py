"""``as_embedder``: adapts an embedding model of AgentScope to the ``Embedder`` protocol."""

from __future__ import annotations

from ..errors import InvalidInput
from ..loops import wait_for
from ..message import TextBlock
from ..types import Embedding
from .agentscope import EmbeddingModelBase
from .callables import CallableEmbedder
from .contract import Embedder
from .local import LocalTextEmbedding
from .multimodal import DashScopeMultiModalEmbedding


def as_embedder(model: Embedder | EmbeddingModelBase) -> Embedder:
    """Return an embedder that calls this model; an embedder is returned unchanged.

    Questions are embedded like passages, because such a model does not distinguish them.

    Args:
        model: An ``Embedder`` or an ``EmbeddingModelBase``.

    Raises:
        InvalidInput: If it is neither.
    """
    if isinstance(model, LocalTextEmbedding) and model.embedding_cache is None:
        return model.embedder
    if isinstance(model, EmbeddingModelBase):
        return _asking(model)
    if isinstance(model, Embedder):
        return model
    raise InvalidInput(
        f"embedding_model must be an Embedder or an EmbeddingModelBase, got {type(model).__name__}"
    )


def _asking(model: EmbeddingModelBase) -> Embedder:
    takes_blocks_alone = isinstance(model, DashScopeMultiModalEmbedding)

    def ask(texts: list[str]) -> list[Embedding]:
        blocks = [TextBlock(type="text", text=text) for text in texts]
        return wait_for(model(blocks if takes_blocks_alone else texts)).embeddings

    return CallableEmbedder(ask, f"{model.model_name}/{model.dimensions}", model.dimensions)
