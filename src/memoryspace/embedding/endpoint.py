"""Client of an ``/embeddings`` endpoint as defined by OpenAI.

Ollama, vLLM, LiteLLM, llama.cpp and most providers have one. Transient failures are retried; others
are raised at once. The key is never shown.
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
_WHO_AND_WHAT = frozenset({401, 403, 404})  # about the key or the model, not the texts


class EmbeddingFailed(MemorySpaceError):
    """An endpoint rejected a request, or returned an invalid response."""


class EmbeddingUnavailable(EmbeddingFailed):
    """An endpoint could not be reached, or was busy on every attempt. Try again later."""


@dataclass(frozen=True)
class Endpoint:
    """Address, model and retry settings of an endpoint.

    ``attempts`` includes the first request. ``sleep`` waits between attempts.
    """

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
        """Return the model's vector for each text, and the number of tokens.

        ``dimensions`` requests vectors of that length, which not every model supports.
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
        """The address of the endpoint."""
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
                f"{self.url} returned {len(answer)} bytes that are not {count} embeddings; "
                f"check base_url"
            ) from error
        return vectors, tokens


def reason(trouble: Refused) -> str:
    """Return the server's message, unless it may quote the texts, which are user data."""
    return str(trouble) if trouble.status in _WHO_AND_WHAT else f"status {trouble.status}"
