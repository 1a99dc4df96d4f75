"""``Embedder``: the protocol for turning texts into vectors, and its shared helpers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InvalidInput
from ..operations import operation

Vectors = NDArray[np.float32]


@runtime_checkable
class Embedder(Protocol):
    """An object that turns texts into vectors of one space.

    ``name`` identifies the space: model, version and dimensions. Never compare vectors of embedders
    with different names. ``scripts`` are the scripts (see ``scripts_of``) that its vectors rank
    well; None means all. An embedder that distinguishes questions from passages also has
    ``embed_questions`` (see ``TellsQuestions``); call it through the function
    ``embed_questions(...)``.
    """

    @property
    def name(self) -> str:
        """The name of the vector space."""
        ...

    @property
    def dimensions(self) -> int:
        """The length of each vector."""
        ...

    @property
    def scripts(self) -> frozenset[str] | None:
        """The scripts it can rank, or None for all."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return a unit vector for each text, or zeros for a text that the model cannot read."""
        ...


@runtime_checkable
class TellsQuestions(Protocol):
    """An embedder with different vectors for questions and for the passages that answer them."""

    def embed_questions(self, texts: Sequence[str]) -> Vectors:
        """Return a unit vector for each question, comparable with those of ``embed``."""
        ...


class StandsBefore:
    """Marks an embedder that wraps another one; only the wrapped one is reported."""


def embed_texts(embedder: Embedder, texts: Sequence[str]) -> Vectors:
    """Return the vectors of texts, reported as an operation."""
    if isinstance(embedder, StandsBefore):
        return embedder.embed(texts)
    with operation("embedder.embed", on=embedder.name) as done:
        done.count(given=len(texts))
        return embedder.embed(texts)


def embed_questions(embedder: Embedder, texts: Sequence[str]) -> Vectors:
    """Return the vectors of questions, or of passages if the embedder has only those."""
    if not isinstance(embedder, TellsQuestions):
        return embed_texts(embedder, texts)
    if isinstance(embedder, StandsBefore):
        return embedder.embed_questions(texts)
    with operation("embedder.embed_questions", on=embedder.name) as done:
        done.count(given=len(texts))
        return embedder.embed_questions(texts)


def check_texts(texts: Sequence[str]) -> list[str]:
    """Return the texts as a list; raise ``TypeError`` if one is not a str."""
    if isinstance(texts, str):
        raise TypeError("embed() takes a sequence of texts, got one str; put it into a list")
    found = list(texts)
    for number, text in enumerate(found):
        if not isinstance(text, str):
            raise TypeError(f"text number {number} must be a str, got {type(text).__name__}")
    return found


def unit_rows(vectors: ArrayLike, count: int, dimensions: int, name: str) -> Vectors:
    """Return a model's vectors as unit vectors; raise ``InvalidInput`` if they are invalid."""
    try:
        rows = np.asarray(vectors, np.float64)
    except (ValueError, TypeError) as error:
        raise InvalidInput(f"{name!r} did not return a table of numbers") from error
    if rows.shape != (count, dimensions) and (count or rows.size):
        raise InvalidInput(
            f"{name!r} returned an array of shape {rows.shape} for {count} texts, expected "
            f"({count}, {dimensions}); set dimensions to the length of the model's vectors"
        )
    if not np.isfinite(rows).all():
        raise InvalidInput(f"{name!r} returned NaN or infinite numbers")
    return normalised(rows.reshape(count, dimensions))


def normalised(rows: NDArray[np.floating[Any]]) -> Vectors:
    """Return rows scaled to length 1; rows of zeros stay zero."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1), np.float32)
