"""Adapters for our chat models and embedders in mem0, registered as a provider of its factories.

mem0 calls models from threads and waits. Our models are coroutines, so they all run on one event
loop (see ``loops.wait_for``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from ...embedding import Embedder, EmbeddingModelBase, embed_questions, embed_texts
from ...errors import InvalidInput, ModelFailed
from ...loops import wait_for
from ...model import ChatModel
from ...model.calling import completed

PROVIDER = "memoryspace"

_JSON = {"type": "object"}  # any object: mem0's prompt describes it


class ChatModelForMem0:
    """Adapts the ``ChatModel`` in ``config.model`` to mem0's interface."""

    def __init__(self, config: Any) -> None:
        self.config = config

    def generate_response(
        self,
        messages: Sequence[Mapping[str, str]],
        response_format: Any = None,
        tools: Any = None,
        tool_choice: str = "auto",
    ) -> str:
        """Return the answer to a conversation, as JSON if a format is given."""
        if tools:
            raise ModelFailed("mem0 requested tool calls, which a ChatModel does not support")
        schema = None if response_format is None else _JSON
        completion = wait_for(completed(self.config.model, messages, schema=schema))
        text: str = completion.text
        return text


class EmbedderForMem0:
    """Adapts the ``Embedder`` or AgentScope model in ``config.model`` to mem0's interface."""

    def __init__(self, config: Any) -> None:
        self.config = config

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        """Return the vector of a text."""
        return self.embed_batch([text], memory_action)[0]

    def embed_batch(
        self, texts: Sequence[str], memory_action: str | None = "add"
    ) -> list[list[float]]:
        """Return the vectors of texts."""
        model = self.config.model
        if isinstance(model, EmbeddingModelBase):
            return [list(each) for each in wait_for(model(list(texts))).embeddings]
        is_asked = memory_action == "search"
        vectors = (embed_questions if is_asked else embed_texts)(model, list(texts))
        return [list(map(float, each)) for each in vectors]


def register() -> None:
    """Register our provider with mem0. Calling it twice is harmless."""
    factories = import_module("mem0.utils.factory")
    configs = import_module("mem0.configs.llms.base")
    here = f"{__name__}."
    model = (here + ChatModelForMem0.__name__, configs.BaseLlmConfig)
    factories.LlmFactory.provider_to_class[PROVIDER] = model
    factories.EmbedderFactory.provider_to_class[PROVIDER] = here + EmbedderForMem0.__name__


def llm_config(model: ChatModel) -> Any:
    """Return mem0's configuration for one of our models.

    It is constructed without validation, which would reject a provider that mem0 does not list.
    """
    config = import_module("mem0.llms.configs").LlmConfig
    return config.model_construct(provider=PROVIDER, config={"model": model})


def embedder_config(model: Embedder | EmbeddingModelBase) -> Any:
    """Return mem0's configuration for one of our embedders."""
    config = import_module("mem0.embeddings.configs").EmbedderConfig
    return config.model_construct(provider=PROVIDER, config={"model": model})


def check_models(model: object, embedding_model: object) -> None:
    """Raise ``InvalidInput`` if a model has the wrong type, before anything is opened."""
    if model is not None and not isinstance(model, ChatModel):
        raise InvalidInput(f"model must be a ChatModel, got {type(model).__name__}")
    if embedding_model is not None and not isinstance(
        embedding_model, Embedder | EmbeddingModelBase
    ):
        raise InvalidInput(
            f"embedding_model must be an Embedder or an EmbeddingModelBase, "
            f"got {type(embedding_model).__name__}"
        )
