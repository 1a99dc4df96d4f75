"""``DashScopeMultiModalEmbedding``: texts, images and videos as vectors of one space."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import InvalidInput
from ..http import Refused, Server, Unreachable
from ..message import ImageBlock, TextBlock, VideoBlock
from ..model.addresses import DASHSCOPE
from ..types import Embedding, JSONSerializableObject
from .agentscope import EmbeddingCacheBase, EmbeddingResponse
from .endpoint import EmbeddingFailed, EmbeddingUnavailable, reason
from .requested import RequestedEmbedding

_PATH = "/services/embeddings/multimodal-embedding/multimodal-embedding"
_MODELS = {  # prefix of a model's name: dimensions, items per request
    "tongyi-embedding-vision-plus": (1152, 8),
    "tongyi-embedding-vision-flash": (768, 8),
    "multimodal-embedding-v": (1024, 1),
}
_UNKNOWN = (1024, 1)


class DashScopeMultiModalEmbedding(RequestedEmbedding):
    """A model of Alibaba Cloud that takes text, image and video blocks; videos by address only.

    Args:
        api_key: The key.
        model_name: The name of the model.
        dimensions: The length of the vectors; known for the usual models.
        embedding_cache: A cache of vectors.
        base_url: The address of the API.
        timeout: Seconds to wait for a response.
        attempts: How often to try if the failure may pass.
        sleep: Waits between attempts.
    """

    supported_modalities = ("text", "image", "video")

    def __init__(
        self,
        api_key: str,
        model_name: str,
        dimensions: int | None = None,
        embedding_cache: EmbeddingCacheBase | None = None,
        *,
        base_url: str = f"{DASHSCOPE}/api/v1",
        timeout: float = 60.0,
        attempts: int = 4,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        known = [size for name, size in _MODELS.items() if model_name.startswith(name)]
        length, self.batch_size_limit = known[0] if known else _UNKNOWN
        if known and dimensions not in (None, length):
            raise InvalidInput(f"model {model_name!r} has {length} dimensions, got {dimensions}")
        super().__init__(
            model_name, dimensions if dimensions is not None else length, embedding_cache
        )
        self._server = Server(base_url, api_key, timeout, attempts, sleep)

    async def __call__(
        self, text: Sequence[TextBlock | ImageBlock | VideoBlock]
    ) -> EmbeddingResponse:
        """Return a vector for each block."""
        return await self._embedded([_content_of(block) for block in text])

    def _ask(self, things: Sequence[Any]) -> tuple[list[Embedding], int]:
        body = {"model": self.model_name, "input": {"contents": list(things)}}
        try:
            answer = self._server.post(_PATH, body)
        except Unreachable as trouble:
            raise EmbeddingUnavailable(str(trouble)) from trouble.__cause__
        except Refused as trouble:
            raise EmbeddingFailed(
                f"{self._server.url(_PATH)} refused model {self.model_name!r}: {reason(trouble)}"
            ) from trouble.__cause__
        return self._vectors(answer, len(things))

    def _identifier(self, thing: Any) -> JSONSerializableObject:
        return {
            "input": [thing],
            "model": self.model_name,
            "dimensions": self.dimensions,
            "base_url": self._server.base_url,
        }

    def _vectors(self, answer: bytes, count: int) -> tuple[list[Embedding], int]:
        try:
            found = json.loads(answer)
            items = found["output"]["embeddings"]
            rows = {int(item.get("index", at)): item for at, item in enumerate(items)}
            vectors = [[float(x) for x in rows[number]["embedding"]] for number in range(count)]
            usage = found.get("usage") or {}
            tokens = sum(int(usage.get(name) or 0) for name in ("input_tokens", "image_tokens"))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise EmbeddingFailed(
                f"{self._server.url(_PATH)} returned {len(answer)} bytes that are not {count} "
                f"embeddings; check base_url"
            ) from error
        return vectors, tokens


def _content_of(block: Any) -> dict[str, str]:
    kind = block.get("type") if isinstance(block, Mapping) else None
    if kind == "text":
        return {"text": block["text"]}
    source = block.get("source") if kind in ("image", "video") else None
    if isinstance(source, Mapping) and source.get("type") == "url":
        return {str(kind): source["url"]}
    if kind == "image" and isinstance(source, Mapping) and source.get("type") == "base64":
        return {"image": f"data:{source['media_type']};base64,{source['data']}"}
    raise ValueError("expected a text, image or video block; a video must have a url")
