"""``OpenAIEmbedder``: an embedder on an OpenAI-compatible server."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from ..errors import InvalidInput
from .contract import Vectors, check_texts, unit_rows
from .endpoint import Endpoint

BATCH = 128  # texts in one request


class OpenAIEmbedder:
    """An ``Embedder`` on any OpenAI-compatible server, such as Ollama.

    Args:
        base_url: The address of the server.
        model: The name of the model.
        api_key: The key, if the server needs one.
        dimensions: The length of the model's vectors.
        cut: Whether to ask the server to shorten its vectors to ``dimensions``.
        scripts: The scripts that the model ranks; None for all.
        batch: Texts per request.
        timeout: Seconds to wait for a response.
        attempts: How often to try if the failure may pass.
        sleep: Waits between attempts.

    Raises:
        InvalidInput: If an argument is invalid.

    Examples:
        >>> OpenAIEmbedder("http://localhost:11434/v1", "nomic-embed-text", None, 768).name
        'nomic-embed-text/768'
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
        """Return a unit vector for each text; a blank text is not sent and gets zeros."""
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
