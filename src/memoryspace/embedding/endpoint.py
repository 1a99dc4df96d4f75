"""An ``/embeddings`` endpoint as OpenAI defined it, over the standard library alone.

Ollama, vLLM, LiteLLM, llama.cpp and most providers answer the same request. What may pass is tried
again; what will not is said at once. The key is sent to the given address only: a redirection is
an error, and no message, log or ``repr`` ever shows it.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from ..errors import InvalidInput, MemorySpaceError

_PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_LONGEST_WAIT = 30.0  # seconds, whatever a server asks for
_KEY = re.compile("[!-~]+")  # anything else could not be sent, and the error would show it
_SHOWN = 300  # characters of an answer in an error


class EmbeddingFailed(MemorySpaceError):
    """An endpoint refused a request, or gave an answer that is none."""


class EmbeddingUnavailable(EmbeddingFailed):
    """An endpoint could not be reached, or was busy each time. Trying later may help."""


class _NoRedirection(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


@dataclass(frozen=True)
class Endpoint:
    """Where and how to ask. ``attempts`` counts the first one; ``sleep`` waits between them."""

    base_url: str
    model: str
    api_key: str | None = field(default=None, repr=False)
    timeout: float = 60.0
    attempts: int = 4
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)

    def __post_init__(self) -> None:
        parts = urlsplit(self.base_url)
        if parts.username is not None or parts.password is not None:
            raise InvalidInput("base_url must not hold a name or password; use api_key")
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise InvalidInput(f"base_url must begin with http:// or https://, got {self.base_url}")
        if self.api_key is not None and not _KEY.fullmatch(self.api_key):
            raise InvalidInput("api_key must be of visible ASCII characters, without spaces")
        if self.attempts < 1 or not self.timeout > 0:
            raise InvalidInput(
                f"attempts must be 1 or more and timeout more than 0, "
                f"got {self.attempts} and {self.timeout}"
            )

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
        return self._vectors(self._ask(json.dumps(body).encode()), len(texts))

    @property
    def url(self) -> str:
        """The address that is asked."""
        return self.base_url.rstrip("/") + "/embeddings"

    def _ask(self, body: bytes) -> bytes:
        for attempt in range(self.attempts):
            try:
                return self._post(body)
            except _Passing as trouble:
                if attempt + 1 == self.attempts:
                    raise EmbeddingUnavailable(
                        f"{self.url} failed {self.attempts} times, last: {trouble}"
                    ) from trouble.__cause__
                wait = trouble.wait if trouble.wait is not None else 0.5 * 2**attempt
                self.sleep(min(wait, _LONGEST_WAIT))
        raise AssertionError("attempts is 1 or more")

    def _post(self, body: bytes) -> bytes:
        headers = {"Content-Type": "application/json"}
        if self.api_key is not None:
            headers["Authorization"] = f"Bearer {self.api_key}"
        request = Request(self.url, body, headers)  # its scheme was checked
        try:
            with build_opener(_NoRedirection).open(request, timeout=self.timeout) as answer:
                found: bytes = answer.read()
                return found
        except HTTPError as error:
            with error:
                said = self._shown(error.read(_SHOWN * 4))
            text = f"status {error.code} {said}".strip()
            if error.code in _PASSING:
                raise _Passing(text, _seconds(error.headers.get("Retry-After"))) from error
            raise EmbeddingFailed(f"{self.url} refused model {self.model!r}: {text}") from error
        except (OSError, HTTPException) as error:  # no name, no answer, half an answer
            raise _Passing(f"{type(error).__name__}: {error}", None) from error

    def _vectors(self, answer: bytes, count: int) -> tuple[list[list[float]], int]:
        try:
            found = json.loads(answer)
            rows = {int(item.get("index", at)): item for at, item in enumerate(found["data"])}
            vectors = [[float(x) for x in rows[number]["embedding"]] for number in range(count)]
            usage = found.get("usage") or {}
            tokens = int(usage.get("total_tokens") or usage.get("prompt_tokens") or 0)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise EmbeddingFailed(
                f"{self.url} did not answer with {count} embeddings: {self._shown(answer)}"
            ) from error
        return vectors, tokens

    def _shown(self, answer: bytes) -> str:
        text = " ".join(answer.decode("utf-8", "replace").split())
        if self.api_key:
            text = text.replace(self.api_key, "***")  # some servers say which key was wrong
        return text[:_SHOWN]


class _Passing(Exception):
    """A trouble that may be over soon, perhaps in so many seconds."""

    def __init__(self, text: str, wait: float | None) -> None:
        super().__init__(text)
        self.wait = wait


def _seconds(text: str | None) -> float | None:
    try:
        return max(0.0, float(text)) if text is not None else None
    except ValueError:  # a date: not worth a parser
        return None
