"""``SimilarityRetriever``: hybrid search over objects, by words and, with an embedder, by vectors.

Both arms count half, each scaled from 0 to 1 over the candidates of both. Vectors are made in
batches, when a query needs them. While the embedder fails, queries are answered by words alone and
one warning is logged; a ranking never mixes objects with and without a vector. Do not give an
embedder texts in a language it was not trained on: results get worse than with words alone.

The retriever has no lock; allow one caller at a time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInput
from .dense.index import DenseIndex
from .sparse.index import SparseIndex
from .text.analysis import text_of

_LEAST_POOL = 100  # candidates of each arm, at least
_POOL = 10  # candidates of each arm per requested result

logger = logging.getLogger(__name__)


class Remembered(Protocol):
    """An object that can be indexed: anything with an id and a payload."""

    @property
    def id(self) -> str:
        """The id of the object."""

    @property
    def payload(self) -> Any:
        """A str or a JSON-like value; its strings and numbers are searched."""


class TextEmbedder(Protocol):
    """The part of an ``Embedder`` that a retriever needs: texts to vectors."""

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        """Return one row per text."""


class DenseModel(Protocol):
    """A model with the interface of sentence-transformers: texts to vectors."""

    def encode(self, texts: list[str]) -> NDArray[np.float32]:
        """Return one row per text."""


_Embed: TypeAlias = Callable[[list[str]], NDArray[np.float32]]
_Object = TypeVar("_Object", bound=Remembered)


class _Indexed(NamedTuple, Generic[_Object]):
    object: _Object
    text: str
    age: int


class SimilarityRetriever(Generic[_Object]):
    """Objects by id, searched by similarity to a query.

    Pass ``embedder`` or ``dense_model`` for fused scores from 0 to 1. With neither, words alone are
    searched and the scores are those of BM25.

    Args:
        embedder: An object with ``embed(texts)``.
        dense_model: An object with ``encode(texts)``, such as a sentence-transformers model.

    Raises:
        InvalidInput: If both are given.
        TypeError: If what is given lacks its method.

    Example::

        retriever = SimilarityRetriever()
        retriever.index(obj)  # anything with an id and a payload
        retriever.query("tea in Lisbon", top_k=3)
    """

    def __init__(
        self, embedder: TextEmbedder | None = None, dense_model: DenseModel | None = None
    ) -> None:
        self._embed = _chosen(embedder, dense_model)
        self._ask: _Embed | None = getattr(embedder, "embed_questions", self._embed)
        self._failing = False
        self._clear()

    def __repr__(self) -> str:
        arms = "words" if self._embed is None else "words and vectors"
        return f"<SimilarityRetriever: {len(self)} objects, searched by {arms}>"

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, object_id: object) -> bool:
        return object_id in self._keys

    def index(self, obj: _Object) -> None:
        """Index an object. It replaces one with the same id, and counts as the newest."""
        text = text_of(obj.payload)
        self.remove(obj.id)
        key = self._free.pop() if self._free else len(self._entries)
        self._sparse.add(key, text)
        self._entries[key] = _Indexed(obj, text, self._age)
        self._keys[obj.id] = key
        self._age += 1
        if self._embed is not None:
            self._without_vector[key] = text

    def remove(self, obj_or_id: _Object | str) -> bool:
        """Remove an object, or the one with this id; return whether it was indexed."""
        object_id = obj_or_id if isinstance(obj_or_id, str) else obj_or_id.id
        key = self._keys.pop(object_id, None)
        if key is None:
            return False
        self._sparse.remove(key)
        if self._without_vector.pop(key, None) is None and self._dense is not None:
            self._dense.remove(key)
        del self._entries[key]
        self._free.append(key)
        return True

    def rebuild(self, objects: Iterable[_Object]) -> None:
        """Replace everything with these objects."""
        fresh = list(objects)  # the iterable may read what is about to be cleared
        self._clear()
        for obj in fresh:
            self.index(obj)

    def query(
        self,
        query: str,
        top_k: int = 5,
        filter_fn: Callable[[_Object], bool] | None = None,
    ) -> list[tuple[_Object, float]]:
        """Return the most similar objects with their scores.

        Args:
            query: The text to compare with.
            top_k: The most objects to return.
            filter_fn: Returns whether an object may be returned. It is applied before ranking.

        Returns:
            Up to ``top_k`` pairs of object and score, the best first; of equals, the newest first.

        Raises:
            TypeError: If ``query`` is not a str or ``top_k`` not an int.
            InvalidInput: If ``top_k`` is less than 1.
        """
        _check(query, top_k)
        vector = self._vector_of(query)
        if vector is None or self._dense is None:
            found = self._by_words(query, top_k, filter_fn)
        else:
            found = self._fused(query, vector, top_k, filter_fn)
        return [(self._entries[key].object, score) for key, score in found]

    def check(self) -> None:
        """Verify every invariant. Reads everything; meant for tests."""
        self._sparse.check()
        assert sorted(self._keys.values()) == sorted(self._entries)
        assert not set(self._free) & set(self._entries)
        assert all(self._keys[entry.object.id] == key for key, entry in self._entries.items())
        vectors = set() if self._dense is None else set(self._dense.keys().tolist())
        if self._embed is not None:
            assert vectors | set(self._without_vector) == set(self._entries)
        assert not vectors & set(self._without_vector)

    def _clear(self) -> None:
        self._sparse = SparseIndex(any_word=True)
        self._dense: DenseIndex | None = None  # created with the first vectors, which set its size
        self._entries: dict[int, _Indexed[_Object]] = {}
        self._keys: dict[str, int] = {}
        self._free: list[int] = []
        self._without_vector: dict[int, str] = {}
        self._age = 0

    def _by_words(
        self, query: str, top_k: int, filter_fn: Callable[[_Object], bool] | None
    ) -> list[tuple[int, float]]:
        if filter_fn is None:
            return self._sparse.search(query, top_k)
        return self._sparse.search(
            query, top_k, allow=lambda key: filter_fn(self._entries[key].object)
        )

    def _fused(
        self,
        query: str,
        vector: NDArray[np.float32],
        top_k: int,
        filter_fn: Callable[[_Object], bool] | None,
    ) -> list[tuple[int, float]]:
        """Fuse the arms. A candidate that the word arm did not find shares no word: it scores 0."""
        assert self._dense is not None
        pool = max(_LEAST_POOL, _POOL * top_k)
        allowed = self._entries.keys()
        if filter_fn is not None:
            allowed = {k: e for k, e in self._entries.items() if filter_fn(e.object)}.keys()
        words = dict(self._sparse.search(query, pool, allow=allowed.__contains__))
        near = self._dense.search(vector, pool, among=list(allowed))
        keys = list(words | dict(near))
        by_words = _scaled(np.array([words.get(key, 0.0) for key in keys]), bottom=0.0)
        cosines = self._dense.scores(vector, keys)
        scores = (by_words + _scaled(cosines, bottom=cosines.min(initial=1.0))) / 2
        ranked = sorted(
            zip(keys, scores.tolist(), strict=True),
            key=lambda hit: (-hit[1], -self._entries[hit[0]].age),
        )
        return ranked[:top_k]

    def _vector_of(self, query: str) -> NDArray[np.float32] | None:
        """Return the query's vector, or ``None`` unless every object has a vector, too."""
        if self._embed is None or self._ask is None or not self._entries:
            return None
        try:
            self._make_vectors(self._embed)
            vector: NDArray[np.float32] = np.asarray(self._ask([query]), np.float32)[0]
            assert self._dense is not None, "there are objects, and all have vectors"
            self._dense.scores(vector, [])  # raises if the vector does not fit the index
        except Exception as error:  # whatever the error, the words can still be searched
            self._warn(error)
            return None
        self._failing = False
        return vector

    def _make_vectors(self, embed: _Embed) -> None:
        """Embed all objects that lack a vector, in one batch. Changes nothing on failure."""
        if not self._without_vector:
            return
        vectors = np.asarray(embed(list(self._without_vector.values())), np.float32)
        dense = self._dense if self._dense is not None else DenseIndex(vectors.shape[-1])
        dense.add_many(list(self._without_vector), vectors)
        self._dense = dense
        self._without_vector.clear()

    def _warn(self, error: Exception) -> None:
        """Log the failure once, until the embedder works again."""
        if not self._failing:
            logger.warning("the embedder failed; searching by words alone for now: %r", error)
        self._failing = True


def _chosen(embedder: TextEmbedder | None, dense_model: DenseModel | None) -> _Embed | None:
    if embedder is not None and dense_model is not None:
        raise InvalidInput("pass embedder= or dense_model=, not both")
    if embedder is not None:
        return _method(embedder, "embed", "embedder")
    return _method(dense_model, "encode", "dense_model") if dense_model is not None else None


def _method(thing: object, name: str, argument: str) -> _Embed:
    method: _Embed | None = getattr(thing, name, None)
    if not callable(method) or isinstance(thing, str):  # a str has a method encode, too
        raise TypeError(f"{argument} must have a method {name}(texts), got {thing!r}")
    return method


def _check(query: object, top_k: object) -> None:
    if not isinstance(query, str):
        raise TypeError(f"the query must be a str, got {type(query).__name__}")
    if type(top_k) is not int:
        raise TypeError(f"top_k must be an int, got {type(top_k).__name__}")
    if top_k < 1:
        raise InvalidInput(f"top_k must be 1 or more, got {top_k}")


def _scaled(scores: NDArray[np.float64], *, bottom: float) -> NDArray[np.float64]:
    """Scale to 0 for ``bottom`` and 1 for the best; all 0 if nothing exceeds ``bottom``."""
    spread = scores.max(initial=bottom) - bottom
    return (scores - bottom) / spread if spread > 0 else np.zeros(len(scores))
