"""``SimilarityRetriever``: objects found by their words and, with an embedder, by their meaning.

The two arms are fused half and half, each scaled from 0 to 1 over the candidates of both. Vectors
are made when a query needs them, many at once. While the embedder fails, queries are answered by
words alone, which a warning says once; a ranking never mixes objects with and without a vector.
Do not give an embedder of one language texts of another: it makes results worse than words alone.

One caller at a time: the retriever has no lock of its own.
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

_LEAST_POOL = 100  # candidates of each arm
_POOL = 10  # candidates of each arm for every result wanted

logger = logging.getLogger(__name__)


class Remembered(Protocol):
    """What can be retrieved: anything with an id and a payload."""

    @property
    def id(self) -> str:
        """What it is called."""

    @property
    def payload(self) -> Any:
        """A str or a JSON-like value; its strings and numbers are searched."""


class Embedder(Protocol):
    """Turns texts into vectors."""

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        """Return one row a text."""


class DenseModel(Protocol):
    """Turns texts into vectors, as models of sentence-transformers do."""

    def encode(self, texts: list[str]) -> NDArray[np.float32]:
        """Return one row a text."""


_Embed: TypeAlias = Callable[[list[str]], NDArray[np.float32]]
_Object = TypeVar("_Object", bound=Remembered)


class _Entry(NamedTuple, Generic[_Object]):
    object: _Object
    text: str
    age: int


class SimilarityRetriever(Generic[_Object]):
    """Objects by id, found by similarity to a query.

    Give an ``embedder``, a ``dense_model``, or neither: then words alone count, and a score is
    BM25's. Fused scores are from 0 to 1.
    """

    def __init__(
        self, embedder: Embedder | None = None, dense_model: DenseModel | None = None
    ) -> None:
        self._embed = _chosen(embedder, dense_model)
        self._ask: _Embed | None = getattr(embedder, "embed_questions", self._embed)
        self._failing = False
        self._clear()

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, object_id: object) -> bool:
        return object_id in self._keys

    def index(self, obj: _Object) -> None:
        """Let an object be found; one with the same id is replaced, and counts as new."""
        text = text_of(obj.payload)
        self.remove(obj.id)
        key = self._free.pop() if self._free else len(self._entries)
        self._sparse.add(key, text)
        self._entries[key] = _Entry(obj, text, self._age)
        self._keys[obj.id] = key
        self._age += 1
        if self._embed is not None:
            self._without_vector[key] = text

    def remove(self, obj_or_id: _Object | str) -> bool:
        """Forget an object; tell whether there was one."""
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
        """Forget everything and index these."""
        fresh = list(objects)  # they may come out of what is about to be forgotten
        self._clear()
        for obj in fresh:
            self.index(obj)

    def query(
        self,
        query: str,
        top_k: int = 5,
        filter_fn: Callable[[_Object], bool] | None = None,
    ) -> list[tuple[_Object, float]]:
        """Return the most similar objects with their scores, the best first, then the newest.

        Only objects that ``filter_fn`` says yes to are returned; as many as exist, up to ``top_k``.
        """
        _check(query, top_k)
        vector = self._vector_of(query)
        if vector is None or self._dense is None:
            found = self._by_words(query, top_k, filter_fn)
        else:
            found = self._fused(query, vector, top_k, filter_fn)
        return [(self._entries[key].object, score) for key, score in found]

    def check(self) -> None:
        """Verify every invariant; for tests, it looks at everything."""
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
        self._dense: DenseIndex | None = None  # from the first vector on, which says how long
        self._entries: dict[int, _Entry[_Object]] = {}
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
        """Fuse the arms. A candidate that words did not find has none of them: it gets a 0."""
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
        """Return the query's vector when every object has one, too; else ``None``."""
        if self._embed is None or self._ask is None or not self._entries:
            return None
        try:
            self._make_vectors(self._embed)
            vector: NDArray[np.float32] = np.asarray(self._ask([query]), np.float32)[0]
            assert self._dense is not None, "there are objects, and all have vectors"
            self._dense.scores(vector, [])  # refuses what is no vector of this index
        except Exception as error:  # whatever it is, words still work
            self._warn(error)
            return None
        self._failing = False
        return vector

    def _make_vectors(self, embed: _Embed) -> None:
        """Embed, all at once, what has no vector yet. Nothing is changed if that fails."""
        if not self._without_vector:
            return
        vectors = np.asarray(embed(list(self._without_vector.values())), np.float32)
        dense = self._dense if self._dense is not None else DenseIndex(vectors.shape[-1])
        dense.add_many(list(self._without_vector), vectors)
        self._dense = dense
        self._without_vector.clear()

    def _warn(self, error: Exception) -> None:
        """Say it once, until it works again."""
        if not self._failing:
            logger.warning("the embedder failed; searching by words alone for now: %r", error)
        self._failing = True


def _chosen(embedder: Embedder | None, dense_model: DenseModel | None) -> _Embed | None:
    if embedder is not None and dense_model is not None:
        raise InvalidInput("give an embedder or a dense_model, not both")
    if embedder is not None:
        return _method(embedder, "embed", "embedder")
    return _method(dense_model, "encode", "dense_model") if dense_model is not None else None


def _method(thing: object, name: str, argument: str) -> _Embed:
    method: _Embed | None = getattr(thing, name, None)
    if not callable(method) or isinstance(thing, str):  # a str can be encoded, too
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
    """Scale to 0 for the bottom and 1 for the best; all 0 when none is better."""
    spread = scores.max(initial=bottom) - bottom
    return (scores - bottom) / spread if spread > 0 else np.zeros(len(scores))
