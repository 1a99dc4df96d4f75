"""Vectors from a server: for the engine, and as AgentScope's ``OpenAITextEmbedding``."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import InvalidInput
from ..message import TextBlock
from ..types import Embedding
from .agentscope import EmbeddingCacheBase, EmbeddingModelBase, EmbeddingResponse, EmbeddingUsage
from .contract import Vectors, check_texts, unit_rows
from .endpoint import Endpoint

OPENAI = "https://api.openai.com/v1"
BATCH = 128  # texts in one request


class OpenAIEmbedder:
    """An ``Embedder`` over any OpenAI-compatible endpoint.

    Ollama is one: ``OpenAIEmbedder("http://localhost:11434/v1", "nomic-embed-text", None, 768)``.
    ``dimensions`` is what the model gives; with ``cut=True`` the server is asked to cut its
    vectors to that. ``scripts`` restricts a model that knows only some; None means all.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        api_key: str | None,
        dimensions: int,
        *,
        cut: bool = False,
        scripts: frozenset[str] | None = None,
        batch: int = BATCH,
        timeout: float = 60.0,
        attempts: int = 4,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if dimensions < 1 or batch < 1:
            raise InvalidInput(
                f"dimensions and batch must be 1 or more, got {dimensions} and {batch}"
            )
        self._endpoint = Endpoint(base_url, model, api_key, timeout, attempts, sleep)
        self.name = f"{model}/{dimensions}"
        self.dimensions = dimensions
        self.scripts = scripts
        self._cut = dimensions if cut else None
        self._batch = batch

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return the model's vectors at length 1; a blank text is not sent and gets zeros."""
        checked = check_texts(texts)
        said = [number for number, text in enumerate(checked) if text.strip()]
        rows = np.zeros((len(checked), self.dimensions), np.float32)
        for begin in range(0, len(said), self._batch):
            some = said[begin : begin + self._batch]
            vectors, _ = self._endpoint.embed([checked[number] for number in some], self._cut)
            rows[some] = unit_rows(vectors, len(some), self.dimensions, self.name)
        return rows

    def __repr__(self) -> str:
        return f"OpenAIEmbedder({self._endpoint.base_url!r}, {self.name!r})"


class OpenAITextEmbedding(EmbeddingModelBase):
    """AgentScope's model over any OpenAI-compatible endpoint; requests run in a thread.

    Each text is cached by itself, so a batch with one new text asks for that one only.
    """

    supported_modalities = ("text",)

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
        super().__init__(model_name, dimensions)
        self.embedding_cache = embedding_cache
        self._endpoint = Endpoint(base_url, model_name, api_key, timeout, attempts, sleep)
        self._clock = clock

    async def __call__(self, text: list[str | TextBlock]) -> EmbeddingResponse:
        """Return a vector for each text (or text block), as the model gave it."""
        texts = [_text_of(item) for item in text]
        began = self._clock()
        found = {each: await self._cached(each) for each in dict.fromkeys(texts)}
        missing = [each for each, vector in found.items() if vector is None]
        tokens = 0
        for begin in range(0, len(missing), BATCH):
            some = missing[begin : begin + BATCH]
            vectors, counted = await asyncio.to_thread(self._endpoint.embed, some, self.dimensions)
            tokens += counted
            found.update(zip(some, vectors, strict=True))
            await self._keep(some, vectors)
        seconds = self._clock() - began if missing else 0.0
        return EmbeddingResponse(
            [vector for each in texts if (vector := found[each]) is not None],
            usage=EmbeddingUsage(time=seconds, tokens=tokens),
            source="api" if missing or not texts else "cache",
        )

    async def _cached(self, text: str) -> Embedding | None:
        if self.embedding_cache is None:
            return None
        found = await self.embedding_cache.retrieve(self._identifier(text))
        return found[0] if found else None

    async def _keep(self, texts: list[str], vectors: list[Embedding]) -> None:
        if self.embedding_cache is not None:
            for text, vector in zip(texts, vectors, strict=True):
                await self.embedding_cache.store([vector], self._identifier(text))

    def _identifier(self, text: str) -> dict[str, Any]:
        """Name everything that the vector depends on: another server may give another one."""
        return {
            "input": [text],
            "model": self.model_name,
            "dimensions": self.dimensions,
            "encoding_format": "float",
            "base_url": self._endpoint.base_url,
        }


def _text_of(item: str | TextBlock) -> str:
    if isinstance(item, str):
        return item
    if isinstance(item, dict) and isinstance(item.get("text"), str):
        return item["text"]
    raise ValueError(f"a text or a text block is needed, got {type(item).__name__}")
