"""Embedders of FastEmbed and sentence-transformers, which download their models.

The first use of a model downloads it. Each embedder needs the extra named after its library.
Vectors are scaled to length 1; what a cosine means differs between models.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from numpy.typing import ArrayLike

from ..errors import InvalidInput, MissingExtra
from .callables import CallableEmbedder
from .contract import Vectors

MULTILINGUAL = "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2"  # Apache-2.0, 0.2 GB


class _HubEmbedder(CallableEmbedder):
    """A model that may embed questions differently."""

    def __init__(
        self,
        passages: Callable[[list[str]], ArrayLike],
        questions: Callable[[list[str]], ArrayLike],
        name: str,
        dimensions: int,
        scripts: frozenset[str] | None,
    ) -> None:
        super().__init__(passages, name, dimensions, scripts=scripts)
        self._questions = CallableEmbedder(questions, name, dimensions, scripts=scripts)

    def embed_questions(self, texts: Sequence[str]) -> Vectors:
        """Return a unit vector for each question."""
        return self._questions.embed(texts)


class FastEmbedEmbedder(_HubEmbedder):
    """A model of FastEmbed, on onnxruntime (``pip install 'memoryspace[fastembed]'``).

    Args:
        model: The name of the model.
        cache: The folder for downloaded models; FastEmbed's default if None.
        scripts: The scripts that the model ranks; None for all.

    Raises:
        MissingExtra: If FastEmbed is not installed.
        InvalidInput: If FastEmbed does not support the model.
    """

    def __init__(
        self,
        model: str = MULTILINGUAL,
        *,
        cache: str | None = None,
        scripts: frozenset[str] | None = None,
    ) -> None:
        library = _library("fastembed", "fastembed")
        dimensions = _dimensions(library.TextEmbedding.list_supported_models(), model)
        made = library.TextEmbedding(model, cache_dir=cache, lazy_load=True)
        super().__init__(
            lambda texts: list(made.passage_embed(texts)),
            lambda texts: list(made.query_embed(texts)),
            f"fastembed/{model}/{dimensions}",
            dimensions,
            scripts,
        )


class SentenceTransformerEmbedder(_HubEmbedder):
    """A model of sentence-transformers (``pip install 'memoryspace[sentence-transformers]'``).

    Args:
        model: The name of the model.
        question: A prefix of questions, as models like e5 need ("query: ").
        passage: A prefix of passages.
        scripts: The scripts that the model ranks; None for all.

    Raises:
        MissingExtra: If sentence-transformers is not installed.
    """

    def __init__(
        self,
        model: str = MULTILINGUAL,
        *,
        question: str = "",
        passage: str = "",
        scripts: frozenset[str] | None = None,
    ) -> None:
        library = _library("sentence_transformers", "sentence-transformers")
        made = library.SentenceTransformer(model)
        dimensions = len(made.encode(["a"], show_progress_bar=False)[0])
        marks = f"/{question}|{passage}" if question or passage else ""

        def encode(prefix: str, texts: list[str]) -> Any:
            return made.encode([prefix + text for text in texts], show_progress_bar=False)

        super().__init__(
            lambda texts: encode(passage, texts),
            lambda texts: encode(question, texts),
            f"{model}/{dimensions}{marks}",
            dimensions,
            scripts,
        )


def _library(module: str, extra: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtra(module, extra) from error


def _dimensions(models: Sequence[dict[str, Any]], model: str) -> int:
    known = {each["model"].lower(): int(each["dim"]) for each in models}
    if model.lower() not in known:
        raise InvalidInput(
            f"FastEmbed does not know the model {model!r}; it knows {', '.join(sorted(known))}"
        )
    return known[model.lower()]
