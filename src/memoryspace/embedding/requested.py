"""Base classes of AgentScope's embedding models, with a cache in front.

Only items that the cache lacks are requested, each once and in batches; vectors are returned in the
order of the input. Each batch is cached as soon as it arrives, so a failed request does not lose
the earlier ones.
"""

from __future__ import annotations

import asyncio
import json
import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from ..message import TextBlock
from ..operations import operation
from ..types import Embedding, JSONSerializableObject
from .agentscope import EmbeddingCacheBase, EmbeddingModelBase, EmbeddingResponse, EmbeddingUsage
from .endpoint import EmbeddingFailed


class RequestedEmbedding(EmbeddingModelBase):
    """A model with a cache in front. A request has up to ``batch_size_limit`` items."""

    batch_size_limit: int = 128

    def __init__(
        self,
        model_name: str,
        dimensions: int,
        embedding_cache: EmbeddingCacheBase | None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        super().__init__(model_name, dimensions)
        self.embedding_cache = embedding_cache
        self._clock = clock

    @abstractmethod
    def _ask(self, things: Sequence[Any]) -> tuple[list[Embedding], int]:
        """Return a vector for each item, and the number of tokens. It runs in a thread."""

    @abstractmethod
    def _identifier(self, thing: Any) -> JSONSerializableObject:
        """Return everything that the vector of an item depends on, as a cache key."""

    async def _embedded(self, things: Sequence[Any]) -> EmbeddingResponse:
        """Return a vector for each item; ``source`` is "cache" if nothing was requested."""
        with operation("embedder.embed", on=self.model_name) as done:
            done.count(given=len(things))
            found = await self._found(things)
            if found.usage is not None and found.usage.tokens is not None:
                done.count(input_tokens=found.usage.tokens)
            return found

    async def _found(self, things: Sequence[Any]) -> EmbeddingResponse:
        began, tokens = self._clock(), 0
        keys = [json.dumps(thing, sort_keys=True) for thing in things]
        by_key = dict(zip(keys, things, strict=True))
        found = {key: await self._cached(thing) for key, thing in by_key.items()}
        missing = [key for key, vector in found.items() if vector is None]
        for begin in range(0, len(missing), self.batch_size_limit):
            some = missing[begin : begin + self.batch_size_limit]
            vectors, counted = await self._asked([by_key[key] for key in some])
            found.update(zip(some, vectors, strict=True))
            tokens += counted
        seconds = self._clock() - began if missing else 0.0
        return EmbeddingResponse(
            [vector for key in keys if (vector := found[key]) is not None],
            usage=EmbeddingUsage(time=seconds, tokens=tokens),
            source="api" if missing or not things else "cache",
        )

    async def _cached(self, thing: Any) -> Embedding | None:
        if self.embedding_cache is None:
            return None
        found = await self.embedding_cache.retrieve(self._identifier(thing))
        return found[0] if found and len(found[0]) == self.dimensions else None

    async def _asked(self, things: list[Any]) -> tuple[list[Embedding], int]:
        vectors, tokens = await asyncio.to_thread(self._ask, things)
        length = next((len(each) for each in vectors if len(each) != self.dimensions), None)
        if length is not None:
            raise EmbeddingFailed(
                f"model {self.model_name!r} returned a vector of {length} numbers, not of "
                f"{self.dimensions}; set dimensions to {length}"
            )
        if self.embedding_cache is not None:
            for thing, vector in zip(things, vectors, strict=True):
                await self.embedding_cache.store([vector], self._identifier(thing), overwrite=True)
        return vectors, tokens


class TextEmbedding(RequestedEmbedding):
    """A text embedding model with a cache in front."""

    supported_modalities: ClassVar[tuple[str, ...]] = ("text",)

    async def __call__(self, text: list[str | TextBlock]) -> EmbeddingResponse:
        """Return the model's vector for each text or text block."""
        return await self._embedded([_text_of(item) for item in text])


def _text_of(item: str | TextBlock) -> str:
    if isinstance(item, str):
        return item
    if isinstance(item, dict) and isinstance(item.get("text"), str):
        return item["text"]
    raise ValueError(f"expected a text or a text block, got {type(item).__name__}")
