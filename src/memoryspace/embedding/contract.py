"""What turns texts into vectors: the one contract, and what every implementation shares."""

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
    """Texts to vectors of one space.

    ``name`` identifies the space: model, version and dimensions. Vectors of embedders with
    different names must never be compared. ``scripts`` are the scripts (see ``scripts_of``) that
    its vectors rank well, None for all. One that tells questions from passages has
    ``embed_questions`` too (see ``TellsQuestions``); ask it through ``embed_questions(...)``.
    """

    @property
    def name(self) -> str:
        """The vector space."""
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
        """Return a row of length 1 for each text, of zeros for one that says nothing to it."""
        ...


@runtime_checkable
class TellsQuestions(Protocol):
    """The power of an embedder to make other vectors of questions than of what answers them."""

    def embed_questions(self, texts: Sequence[str]) -> Vectors:
        """Return a row for each question, to be compared with those that ``embed`` makes."""
        ...


class StandsBefore:
    """An embedder in front of another one, which it asks through the doors below itself."""


def embed_texts(embedder: Embedder, texts: Sequence[str]) -> Vectors:
    """Return the vectors of texts: the door to an embedder, where what it does is told."""
    if isinstance(embedder, StandsBefore):
        return embedder.embed(texts)
    with operation("embedder.embed", on=embedder.name) as done:
        done.count(given=len(texts))
        return embedder.embed(texts)


def embed_questions(embedder: Embedder, texts: Sequence[str]) -> Vectors:
    """Return the vectors of questions, from an embedder that tells them apart or does not."""
    if not isinstance(embedder, TellsQuestions):
        return embed_texts(embedder, texts)
    if isinstance(embedder, StandsBefore):
        return embedder.embed_questions(texts)
    with operation("embedder.embed_questions", on=embedder.name) as done:
        done.count(given=len(texts))
        return embedder.embed_questions(texts)


def check_texts(texts: Sequence[str]) -> list[str]:
    """Return the texts as a list, or say what is none."""
    if isinstance(texts, str):
        raise TypeError("embed() takes a sequence of texts, got one str; put it into a list")
    found = list(texts)
    for number, text in enumerate(found):
        if not isinstance(text, str):
            raise TypeError(f"text number {number} must be a str, got {type(text).__name__}")
    return found


def unit_rows(vectors: ArrayLike, count: int, dimensions: int, name: str) -> Vectors:
    """Return what a model gave as rows of length 1, or say what is wrong with it."""
    try:
        rows = np.asarray(vectors, np.float64)
    except (ValueError, TypeError) as error:
        raise InvalidInput(f"{name!r} gave something that is no table of numbers") from error
    if rows.shape != (count, dimensions) and (count or rows.size):
        raise InvalidInput(
            f"{name!r} gave an array of shape {rows.shape} for {count} texts; "
            f"({count}, {dimensions}) was expected: set dimensions to what the model gives"
        )
    if not np.isfinite(rows).all():
        raise InvalidInput(f"{name!r} gave NaN or infinite numbers")
    return normalised(rows.reshape(count, dimensions))


def normalised(rows: NDArray[np.floating[Any]]) -> Vectors:
    """Return rows scaled to length 1; rows of zeros stay what they are."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1), np.float32)
