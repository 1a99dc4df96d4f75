"""Our chat models and embedders inside mem0: the classes it makes when it is told our provider.

mem0 calls models from threads and waits. A model of ours is a coroutine, so all of them run on one
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

_JSON = {"type": "object"}  # any: mem0 says in its prompt which


class ChatModelForMem0:
    """A ``ChatModel`` as mem0 calls one. ``config.model`` is the model itself."""

    def __init__(self, config: Any) -> None:
        self.config = config

    def generate_response(
        self,
        messages: Sequence[Mapping[str, str]],
        response_format: Any = None,
        tools: Any = None,
        tool_choice: str = "auto",
    ) -> str:
        """Answer a conversation, as JSON if a format is asked for."""
        if tools:
            raise ModelFailed("mem0 asked for tool calls, which a ChatModel does not make")
        schema = None if response_format is None else _JSON
        completion = wait_for(completed(self.config.model, messages, schema=schema))
        text: str = completion.text
        return text


class EmbedderForMem0:
    """An ``Embedder``, or an AgentScope model, as mem0 calls one. ``config.model`` is it."""

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
    """Tell mem0 about our provider. Doing so twice does no harm."""
    factories = import_module("mem0.utils.factory")
    configs = import_module("mem0.configs.llms.base")
    here = f"{__name__}."
    model = (here + ChatModelForMem0.__name__, configs.BaseLlmConfig)
    factories.LlmFactory.provider_to_class[PROVIDER] = model
    factories.EmbedderFactory.provider_to_class[PROVIDER] = here + EmbedderForMem0.__name__


def llm_config(model: ChatModel) -> Any:
    """Return mem0's configuration of a model of ours.

    mem0 checks the provider against a list of its own when it reads a configuration, so this one
    is made without being read.
    """
    config = import_module("mem0.llms.configs").LlmConfig
    return config.model_construct(provider=PROVIDER, config={"model": model})


def embedder_config(model: Embedder | EmbeddingModelBase) -> Any:
    """Return mem0's configuration of an embedder of ours."""
    config = import_module("mem0.embeddings.configs").EmbedderConfig
    return config.model_construct(provider=PROVIDER, config={"model": model})


def check_models(model: object, embedding_model: object) -> None:
    """Say what is no model, before anything is opened."""
    if model is not None and not isinstance(model, ChatModel):
        raise InvalidInput(f"model must be a ChatModel, got {type(model).__name__}")
    if embedding_model is not None and not isinstance(
        embedding_model, Embedder | EmbeddingModelBase
    ):
        raise InvalidInput(
            f"embedding_model must be an Embedder or an EmbeddingModelBase, "
            f"got {type(embedding_model).__name__}"
        )
