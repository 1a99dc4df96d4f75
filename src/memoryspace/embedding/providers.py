"""Text embedding models of providers, under AgentScope's names, without their SDKs.

They use the OpenAI-compatible ``/embeddings`` of the providers. Requests run in a thread. Each text
is cached separately, by model, dimensions and server address.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from ..model.addresses import DASHSCOPE, GEMINI, OPENAI, ollama_address
from ..types import Embedding, JSONSerializableObject
from .agentscope import EmbeddingCacheBase
from .endpoint import Endpoint
from .requested import TextEmbedding


class OpenAITextEmbedding(TextEmbedding):
    """A text embedding model of OpenAI or a compatible server.

    Args:
        api_key: The key, if the server needs one.
        model_name: The name of the model.
        dimensions: The length of the vectors.
        embedding_cache: A cache of vectors.
        base_url: The address of the server.
        timeout: Seconds to wait for a response.
        attempts: How often to try if the failure may pass.
        sleep: Waits between attempts.
        clock: Measures durations.
    """

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
    """A text embedding model of Alibaba Cloud, with up to 10 texts per request."""

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
    """A text embedding model of Google."""

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
    """A text embedding model of Ollama at ``host``, by default ``OLLAMA_HOST`` or this machine."""

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
