"""An ``/embeddings`` endpoint as OpenAI defined it.

Ollama, vLLM, LiteLLM, llama.cpp and most providers answer the same request. What may pass is tried
again; what will not is said at once. The key is never shown.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import MemorySpaceError
from ..http import Refused, Server, Unreachable

_PATH = "/embeddings"
_WHO_AND_WHAT = frozenset({401, 403, 404})  # said of the key or of the model, not of the texts


class EmbeddingFailed(MemorySpaceError):
    """An endpoint refused a request, or gave an answer that is none."""


class EmbeddingUnavailable(EmbeddingFailed):
    """An endpoint could not be reached, or was busy each time. Trying later may help."""


@dataclass(frozen=True)
class Endpoint:
    """Where and how to ask. ``attempts`` counts the first one; ``sleep`` waits between them."""

    base_url: str
    model: str
    api_key: str | None = field(default=None, repr=False)
    timeout: float = 60.0
    attempts: int = 4
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)
    _server: Server = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        server = Server(self.base_url, self.api_key, self.timeout, self.attempts, self.sleep)
        object.__setattr__(self, "_server", server)

    def embed(self, texts: Sequence[str], dimensions: int | None) -> tuple[list[list[float]], int]:
        """Return a vector for each text as the model gave it, and the tokens that were counted.

        ``dimensions`` asks for vectors cut to that length, which not every model can do.
        """
        body: dict[str, Any] = {
            "input": list(texts),
            "model": self.model,
            "encoding_format": "float",
        }
        if dimensions is not None:
            body["dimensions"] = dimensions
        return self._vectors(self._ask(body), len(texts))

    @property
    def url(self) -> str:
        """The address that is asked."""
        return self._server.url(_PATH)

    def _ask(self, body: dict[str, Any]) -> bytes:
        try:
            return self._server.post(_PATH, body)
        except Unreachable as trouble:
            raise EmbeddingUnavailable(str(trouble)) from trouble.__cause__
        except Refused as trouble:
            raise EmbeddingFailed(
                f"{self.url} refused model {self.model!r}: {reason(trouble)}"
            ) from trouble.__cause__

    def _vectors(self, answer: bytes, count: int) -> tuple[list[list[float]], int]:
        try:
            found = json.loads(answer)
            rows = {int(item.get("index", at)): item for at, item in enumerate(found["data"])}
            vectors = [[float(x) for x in rows[number]["embedding"]] for number in range(count)]
            usage = found.get("usage") or {}
            tokens = int(usage.get("total_tokens") or usage.get("prompt_tokens") or 0)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise EmbeddingFailed(
                f"{self.url} did not answer with {count} embeddings but with {len(answer)} bytes "
                f"of something else; check base_url"
            ) from error
        return vectors, tokens


def reason(trouble: Refused) -> str:
    """Return what the server said, unless it may repeat the texts: those are a user's."""
    return str(trouble) if trouble.status in _WHO_AND_WHAT else f"status {trouble.status}"
