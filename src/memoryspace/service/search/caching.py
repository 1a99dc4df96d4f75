"""``CachingEmbedder``: an embedder that reuses known vectors and records the ones it makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ...embedding import Embedder, StandsBefore, embed_questions, embed_texts
from .packed import Vector, rounded

AT_ONCE = 256  # texts per call: vectors already made survive a failure of the next call


class CachingEmbedder(StandsBefore):
    """A cache in front of another embedder, for one user's index. One caller at a time.

    Texts whose vectors are known are not embedded. ``made`` holds the vectors of the others, by
    text, until the index takes them. They are rounded as they will come back from the store.
    """

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self.made: dict[str, Vector] = {}
        self._known: Mapping[str, Vector] = {}

    @property
    def name(self) -> str:
        """The vector space."""
        return self.embedder.name

    @property
    def dimensions(self) -> int:
        """The length of each vector."""
        return self.embedder.dimensions

    @property
    def scripts(self) -> frozenset[str] | None:
        """The scripts it can rank, or None for all."""
        return self.embedder.scripts

    def set_known(self, known: Mapping[str, Vector]) -> None:
        """Replace the known vectors."""
        self._known = known

    def embed(self, texts: Sequence[str]) -> Vector:
        """Return a row for each text. Embed only unknown texts, each of them once."""
        missing = [text for text in dict.fromkeys(texts) if self._find(text) is None]
        for start in range(0, len(missing), AT_ONCE):
            part = missing[start : start + AT_ONCE]
            self.made.update(zip(part, self._embedded(part), strict=True))
        found = [vector for text in texts if (vector := self._find(text)) is not None]
        return np.stack(found) if found else np.empty((0, self.dimensions), np.float32)

    def embed_questions(self, texts: Sequence[str]) -> Vector:
        """Return a row for each question. Questions are not cached: they are not memories."""
        return embed_questions(self.embedder, texts)

    def _find(self, text: str) -> Vector | None:
        found = self._known.get(text)
        return self.made.get(text) if found is None else found

    def _embedded(self, texts: Sequence[str]) -> Vector:
        rows = np.asarray(embed_texts(self.embedder, texts), np.float32)
        if rows.shape != (len(texts), self.dimensions) or not np.isfinite(rows).all():
            raise ValueError(
                f"{self.name} must return {len(texts)} × {self.dimensions} finite numbers, "
                f"got an array of shape {rows.shape}"
            )
        return rounded(rows)
