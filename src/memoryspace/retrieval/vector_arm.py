"""The vector arm of a recall: an embedder, and the vectors it made of entries.

It never makes a search fail. Texts that the embedder cannot rank (in a script it was not trained
for) have no vector. When the embedder fails, one warning is logged, the texts wait, and searches go
on by words alone. Changing the embedder fills a second generation of vectors beside the first.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ..embedding import Embedder, can_rank, embed_questions, embed_texts
from ..portable import Portable
from .dense.generations import Generations
from .dense.index import DenseIndex

logger = logging.getLogger(__name__)

Vector = NDArray[np.float32]
TextOf = Callable[[int], str]

_SHOWN = 300  # characters of an error that are kept


class EmbedderStatus(Portable, frozen=True):
    """The health of a memory's embedder.

    Attributes:
        name: The embedder's name; ``None`` without an embedder.
        failures: How many calls failed.
        waiting: How many entries have no vector because of that.
        last_error: The error of the last call; ``None`` if it succeeded.
    """

    name: str | None
    failures: int = 0
    waiting: int = 0
    last_error: str | None = None


class VectorArm:
    """The vectors of entries, by row, and the embedder that makes them."""

    def __init__(self, embedder: Embedder | None) -> None:
        self._embedder = embedder
        self._next: Embedder | None = None  # replaces the embedder once it has embedded everything
        self._generations = Generations()
        self._waiting: dict[int, None] = {}  # rows that still need a vector, in order
        self._warned = False
        self._failures = 0
        self._last_error: str | None = None
        if embedder is not None:
            self._generations.begin(embedder.name, embedder.dimensions)

    @property
    def embedder(self) -> Embedder | None:
        """The embedder in service."""
        return self._embedder

    @property
    def index(self) -> DenseIndex | None:
        """The vectors in service."""
        name = self._serving
        return None if name is None else self._generations.indexes[name]

    @property
    def _serving(self) -> str | None:
        return self._generations.serving if self._embedder is not None else None

    @property
    def nbytes(self) -> int:
        """The bytes that the vectors take."""
        return self._generations.nbytes

    @property
    def waiting(self) -> int:
        """The number of entries without a vector because the embedder failed."""
        return len(self._waiting)

    @property
    def is_changing(self) -> bool:
        """Whether another embedder is taking over."""
        return self._next is not None

    def restore(self, index: DenseIndex) -> None:
        """Take over the vectors of a saved index, made by the embedder in service."""
        if self._embedder is not None:
            self._generations.restore(self._embedder.name, index)

    def status(self) -> EmbedderStatus:
        """Return the health of the embedder in service."""
        name = None if self._embedder is None else self._embedder.name
        return EmbedderStatus(name, self._failures, len(self._waiting), self._last_error)

    def add(self, rows: Sequence[int], texts: Sequence[str]) -> None:
        """Embed entries. If the embedder fails, they wait."""
        if self._embedder is None:
            return
        readable = [
            (row, text) for row, text in zip(rows, texts, strict=True) if self._can_rank(text)
        ]
        if readable and not self._embed(self._embedder, readable):
            self._waiting.update((row, None) for row, _ in readable)

    def remove(self, row: int) -> None:
        """Remove the vectors of an entry."""
        self._waiting.pop(row, None)
        self._generations.remove(row)

    def vector_of(self, question: str) -> Vector | None:
        """Return the vector of a question, or ``None`` if this arm cannot search for it."""
        embedder, index = self._embedder, self.index
        if embedder is None or not index or not self._can_rank(question):
            return None
        try:
            vector = _checked(embedder, embed_questions(embedder, [question]), 1)[0]
        except Exception as error:  # whatever the error, the word arm can answer
            self._warn(error, embedder)
            return None
        self._last_error = None
        length = float(np.linalg.norm(vector))
        return vector / np.float32(length) if length > 0 else None

    def catch_up(self, text_of: TextOf, most: int = 1000) -> int:
        """Embed up to ``most`` waiting entries; return how many still wait."""
        if self._embedder is not None and self._waiting:
            rows = list(self._waiting)[:most]
            if self._embed(self._embedder, [(row, text_of(row)) for row in rows]):
                for row in rows:
                    del self._waiting[row]
        return len(self._waiting)

    def change(self, embedder: Embedder) -> None:
        """Start to re-embed everything; the present embedder serves until that is done."""
        kept = (self._generations.serving, embedder.name)
        if self._next is not None and self._next.name not in kept:
            self._generations.drop(self._next.name)  # the unfinished change is abandoned
        self._generations.begin(embedder.name, embedder.dimensions)
        self._next = embedder

    def embed_anew(self, rows: Sequence[int], text_of: TextOf, most: int = 1000) -> int:
        """Re-embed up to ``most`` of these entries; return how many are left."""
        if self._next is None:
            return 0
        lacking = self._generations.pending(self._next.name, np.array(rows, np.int64))
        texts = ((row, text_of(row)) for row in lacking.tolist())
        todo = [each for each in texts if self._can_rank(each[1], self._next)]
        if todo and not self._embed(self._next, todo[:most]):
            return len(todo)
        if len(todo) <= most:
            self._take_over(self._next)
            return 0
        return len(todo) - most

    def _take_over(self, embedder: Embedder) -> None:
        """Put the new vectors into service and drop the old ones."""
        generations, old = self._generations, self._generations.serving
        unreadable = generations.pending(embedder.name)  # the new embedder cannot rank these
        if len(unreadable) and old is not None:
            for row in unreadable.tolist():
                generations.remove(row)
        generations.switch(embedder.name)
        if old is not None and old != embedder.name:
            generations.drop(old)
        self._waiting.clear()  # it has embedded everything that it can rank
        self._embedder, self._next, self._warned = embedder, None, False

    def _can_rank(self, text: str, embedder: Embedder | None = None) -> bool:
        embedder = self._embedder if embedder is None else embedder
        return embedder is None or can_rank(embedder.scripts, text)

    def _embed(self, embedder: Embedder, texts: Sequence[tuple[int, str]]) -> bool:
        """Make and store vectors; return whether that succeeded."""
        try:
            made = embed_texts(embedder, [text for _, text in texts])
            found = _checked(embedder, made, len(texts))
        except Exception as error:  # whatever the error, the word arm can answer
            self._warn(error, embedder)
            return False
        self._last_error = None
        self._generations.add_many(embedder.name, [row for row, _ in texts], found)
        return True

    def _warn(self, error: Exception, embedder: Embedder) -> None:
        self._failures += 1
        self._last_error = f"{type(error).__name__}: {error}"[:_SHOWN]
        if not self._warned:
            logger.warning(
                "the embedder %s failed; until it works again, texts without a vector are searched "
                "by words alone: %r",
                embedder.name,
                error,
            )
        self._warned = True


def _checked(embedder: Embedder, vectors: NDArray[np.float32], count: int) -> Vector:
    """Return vectors of the promised shape, all finite."""
    found = np.asarray(vectors, np.float32)
    if found.shape != (count, embedder.dimensions) or not np.isfinite(found).all():
        raise ValueError(
            f"{embedder.name} must return {count} × {embedder.dimensions} finite numbers, "
            f"got an array of shape {found.shape}"
        )
    return found
