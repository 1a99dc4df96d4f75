"""An embedder for tests: of no use but to count with, and the same in every process."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

DIMENSIONS = 32


class CountingEmbedder:
    """Counts the texts it was asked for, questions apart. ``fails_after`` so many it fails."""

    def __init__(self, name: str = "counting/32", *, fails_after: int | None = None) -> None:
        self.name = name
        self.dimensions = DIMENSIONS
        self.scripts: frozenset[str] | None = None
        self.texts: list[str] = []
        self.questions: list[str] = []
        self.fails_after = fails_after
        self._lock = threading.Condition()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        with self._lock:
            if self.fails_after is not None and len(self.texts) + len(texts) > self.fails_after:
                raise ConnectionError("the server of vectors does not answer")
            self.texts += texts
            self._lock.notify_all()
        return self._rows(texts)

    def wait_for(self, count: int) -> None:
        """Return when so many texts were asked for."""
        with self._lock:
            assert self._lock.wait_for(lambda: len(self.texts) >= count, timeout=60)

    def embed_questions(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.questions += texts
        return self._rows(texts)

    def _rows(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.zeros((len(texts), DIMENSIONS), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in text.lower().split():
                row[crc32(f"{self.name} {word}".encode()) % DIMENSIONS] += 1
            row /= max(float(np.linalg.norm(row)), 1e-9)
        return rows
