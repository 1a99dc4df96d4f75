"""``Vectorizer``: vectors from an ``Embedder`` or an object with ``embed_documents``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from ...embedding import Embedder, embed_questions, embed_texts
from ...errors import InvalidInput

Embed: TypeAlias = Callable[[Sequence[str]], list[list[float]]]


class Vectorizer:
    """Turns texts and questions into vectors of one length. It may block: call it in a thread."""

    def __init__(self, model: Any, dimensions: int) -> None:
        own = getattr(model, "dimensions", dimensions)
        if isinstance(model, Embedder) and own != dimensions:
            raise InvalidInput(
                f"the embedder {model.name!r} makes vectors of {own} numbers and vector_dimension "
                f"is {dimensions}: set vector_dimension={own}"
            )
        self.of_texts = self._checked(_texts(model), dimensions)
        self.of_questions = self._checked(_questions(model), dimensions)

    @staticmethod
    def _checked(embed: Callable[[list[str]], Any], dimensions: int) -> Embed:
        return lambda texts: _rows(embed(list(texts)), len(texts), dimensions)


def _rows(given: Any, count: int, dimensions: int) -> list[list[float]]:
    try:
        rows = np.asarray(given, np.float64)
    except (ValueError, TypeError) as error:
        raise InvalidInput("embedding_model must return a table of numbers") from error
    if rows.shape != (count, dimensions) or not np.isfinite(rows).all():
        raise InvalidInput(
            f"embedding_model returned an array of shape {rows.shape} for {count} texts, expected "
            f"finite numbers of shape ({count}, {dimensions}): set vector_dimension to the length "
            "of its vectors"
        )
    found: list[list[float]] = rows.tolist()
    return found


def _texts(model: Any) -> Callable[[list[str]], Any]:
    if isinstance(model, Embedder):
        return partial(embed_texts, model)
    embed = getattr(model, "embed_documents", None)
    if embed is None:
        raise TypeError(
            "embedding_model must be an Embedder or have embed_documents(), "
            f"got {type(model).__name__}"
        )
    found: Callable[[list[str]], Any] = embed
    return found


def _questions(model: Any) -> Callable[[list[str]], Any]:
    if isinstance(model, Embedder):
        return partial(embed_questions, model)
    ask = getattr(model, "embed_query", None)
    if ask is None:
        return _texts(model)
    return lambda questions: [ask(question) for question in questions]
