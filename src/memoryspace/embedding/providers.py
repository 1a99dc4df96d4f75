"""Text embedding models of providers, under AgentScope's names, without their SDKs.

Their servers answer OpenAI's ``/embeddings``. Requests run in a thread; each text is cached by
itself, under its model, its dimensions and the server's address.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from ..model.addresses import DASHSCOPE, GEMINI, OPENAI, ollama_address
from ..types import Embedding, JSONSerializableObject
from .agentscope import EmbeddingCacheBase
from .asked import TextEmbedding
from .endpoint import Endpoint


class OpenAITextEmbedding(TextEmbedding):
    """A model of OpenAI's, or behind any server that is like it."""

    def __init__(
        self,
        api_key: str | None,
        model_name: str,
        dimensions: int = 1024,
        embedding_cache: EmbeddingCacheBase | None = None,
        *,
        base_url: str = OPENAI,
        timeout: float = 60.0,
        attempts: int = 4,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        super().__init__(model_name, dimensions, embedding_cache, clock)
        self._endpoint = Endpoint(base_url, model_name, api_key, timeout, attempts, sleep)

    def _ask(self, things: Sequence[str]) -> tuple[list[Embedding], int]:
        return self._endpoint.embed(things, self.dimensions)

    def _identifier(self, thing: str) -> JSONSerializableObject:
        return {
            "input": [thing],
            "model": self.model_name,
            "dimensions": self.dimensions,
            "encoding_format": "float",
            "base_url": self._endpoint.base_url,
        }


class DashScopeTextEmbedding(OpenAITextEmbedding):
    """A model at Alibaba Cloud, which takes 10 texts at a time."""

    batch_size_limit = 10

    def __init__(
        self,
        api_key: str,
        model_name: str,
        dimensions: int = 1024,
        embedding_cache: EmbeddingCacheBase | None = None,
        *,
        base_url: str = f"{DASHSCOPE}/compatible-mode/v1",
        timeout: float = 60.0,
        attempts: int = 4,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(
            api_key,
            model_name,
            dimensions,
            embedding_cache,
            base_url=base_url,
            timeout=timeout,
            attempts=attempts,
            sleep=sleep,
        )


class GeminiTextEmbedding(OpenAITextEmbedding):
    """A model of Google's."""

    batch_size_limit = 100

    def __init__(
        self,
        api_key: str,
        model_name: str,
        dimensions: int = 3072,
        embedding_cache: EmbeddingCacheBase | None = None,
        *,
        base_url: str = f"{GEMINI}/openai",
        timeout: float = 60.0,
        attempts: int = 4,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(
            api_key,
            model_name,
            dimensions,
            embedding_cache,
            base_url=base_url,
            timeout=timeout,
            attempts=attempts,
            sleep=sleep,
        )


class OllamaTextEmbedding(OpenAITextEmbedding):
    """A model on one's own machine, or on ``host`` (else that of ``OLLAMA_HOST``)."""

    def __init__(
        self,
        model_name: str,
        dimensions: int,
        host: str | None = None,
        embedding_cache: EmbeddingCacheBase | None = None,
        *,
        timeout: float = 60.0,
        attempts: int = 4,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(
            None,
            model_name,
            dimensions,
            embedding_cache,
            base_url=f"{ollama_address(host)}/v1",
            timeout=timeout,
            attempts=attempts,
            sleep=sleep,
        )
