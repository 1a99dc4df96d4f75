"""Models from a hub, for people who are online: FastEmbed's and those of sentence-transformers.

The first use of a model downloads it. Each embedder needs the extra that is named like its library.
Vectors are as the model gives them, at length 1: what a cosine means differs between models.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from numpy.typing import ArrayLike

from ..errors import InvalidInput, MissingExtra
from .contract import Vectors
from .own import CallableEmbedder

MULTILINGUAL = "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2"  # Apache-2.0, 0.2 GB


class _HubEmbedder(CallableEmbedder):
    """A model that may treat questions in another way."""

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
        """Return what the model gives for questions, at length 1."""
        return self._questions.embed(texts)


class FastEmbedEmbedder(_HubEmbedder):
    """A model of FastEmbed, on onnxruntime (``pip install 'memoryspace[fastembed]'``).

    ``cache`` is the folder that models are downloaded to, by default FastEmbed's own.
    ``scripts`` are those that the model ranks, None for all.
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

    ``question`` and ``passage`` are put in front of texts, as models like e5 want it ("query: ").
    ``scripts`` are those that the model ranks, None for all.
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
