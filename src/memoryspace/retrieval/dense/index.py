"""``DenseIndex``: vector search by cosine, exact for small sets and nearly exact for large ones.

If a search may return up to ``exact_up_to`` vectors, all of them are compared. Above that, sign
bits select candidates and only these are compared; ``exact=True`` compares all. A zero vector can
be stored, but no search returns it.

The index has no lock; allow one caller at a time.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import InvalidInput
from .files import load_rows, save_rows
from .rows import MAX_KEY, Keys, Rows, Slots, Vectors
from .scan import Scanner, pack
from .units import as_vectors, unit, units

EXACT_UP_TO = 10_000  # vectors: above about this many, scanning bits first is faster

_LEAST_CANDIDATES = 400
_CANDIDATE_SHARE = 100  # one in a hundred
_MOST_CANDIDATES = 4000
_ROUNDING = 1e-5  # an upper bound of the rounding error of float32 products of unit vectors
_AT_ONCE = 4096  # vectors compared in float64

Scores = NDArray[np.float64]


class DenseIndex:
    """Vectors of one length under int keys from 0 to 2**28 - 1.

    The key table takes four bytes for each key up to the greatest.

    Args:
        dimensions: The length of the vectors.
        exact_up_to: Up to this many vectors, every one is compared.
        candidates: How many vectors are compared after a scan of bits; one in a hundred by
            default, from 400 to 4000.

    Raises:
        InvalidInput: If a number is out of range.

    Examples:
        >>> index = DenseIndex(3)
        >>> index.add(7, [1.0, 0.0, 0.0])
        >>> index.search([1.0, 0.0, 0.0], top_k=1)
        [(7, 1.0)]
    """

    def __init__(
        self, dimensions: int, *, exact_up_to: int = EXACT_UP_TO, candidates: int | None = None
    ) -> None:
        if dimensions < 1:
            raise InvalidInput(f"dimensions must be 1 or more, got {dimensions}")
        if exact_up_to < 0 or (candidates is not None and candidates < 1):
            raise InvalidInput(
                "exact_up_to must be 0 or more and candidates 1 or more, "
                f"got {exact_up_to} and {candidates}"
            )
        self.dimensions = dimensions
        self.exact_up_to = exact_up_to
        self.candidates = candidates
        self._hold(Rows(dimensions))

    def __repr__(self) -> str:
        return f"<DenseIndex: {len(self)} vectors of {self.dimensions} dimensions>"

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, int) and self._rows.slot(key) >= 0

    def has(self, keys: ArrayLike) -> NDArray[np.bool_]:
        """Return for each key whether it is indexed."""
        return self._rows.slots(_as_keys(keys)) >= 0

    def keys(self) -> Keys:
        """Return all keys, the oldest vector first."""
        return self._rows.keys[self._rows.occupied()].astype(np.int64)

    def add(self, key: int, vector: ArrayLike) -> None:
        """Store a vector, scaled to length 1, under a new key.

        Raises:
            InvalidInput: If the key is in use or out of range, or the vector does not fit.
            TypeError: If the key is not an int.
        """
        self._must_be_new(key)
        row = unit(vector, self.dimensions, key)
        self._rows.put(key, row, pack(row[np.newaxis])[0])

    def add_many(self, keys: Sequence[int] | Keys, vectors: ArrayLike) -> None:
        """Store vectors in the given order, all or none; see ``add`` for the errors."""
        table = as_vectors(vectors)
        names = _as_keys(keys).tolist()
        if table.shape != (len(names), self.dimensions):
            raise InvalidInput(
                f"{len(names)} keys need vectors of shape ({len(names)}, {self.dimensions}), "
                f"got {table.shape}"
            )
        if len(set(names)) < len(names):
            raise InvalidInput("a key occurs twice in add_many(); pass one vector for each key")
        for key in names:
            self._must_be_new(key)
        rows = units(table, names)
        self._rows.put_many(names, rows, pack(rows))

    def remove(self, key: int) -> bool:
        """Remove a vector; return whether there was one."""
        return self._rows.release(key)

    def search(
        self,
        vector: ArrayLike,
        top_k: int = 5,
        *,
        allow: NDArray[np.bool_] | None = None,
        among: Sequence[int] | Keys | None = None,
        exact: bool = False,
    ) -> list[tuple[int, float]]:
        """Return the nearest vectors.

        Args:
            vector: The query vector; its length does not matter.
            top_k: The most results to return.
            allow: A flat array of bool by key: whether it may be returned. Keys beyond its end may
                not.
            among: The keys that may be returned; pass ``allow`` or ``among``, not both.
            exact: Compare every allowed vector, however many there are.

        Returns:
            Pairs of key and cosine, the nearest first; of equals, the newest first.

        Raises:
            InvalidInput: If the vector, ``top_k`` or a filter is invalid.
        """
        if top_k < 1:
            raise InvalidInput(f"top_k must be 1 or more, got {top_k}")
        query = unit(vector, self.dimensions, None)
        slots = self._allowed(allow, among)
        size = len(self) if slots is None else len(slots)
        if not size or not query.any():
            return []
        if not exact and size > max(self.exact_up_to, 10 * top_k):
            wanted = max(self._wanted(size), 4 * top_k)
            slots = self._scanner.nearest(pack(query[np.newaxis])[0], wanted, slots)
        if slots is None:
            slots, products = self._scan(query)
        else:
            products = self._rows.products(slots, query)
        return self._best(slots, products, query, top_k)

    def scores(self, vector: ArrayLike, keys: Sequence[int] | Keys) -> Scores:
        """Return the exact cosine for each key, 0 for a key that is not indexed."""
        slots = self._rows.slots(_as_keys(keys))
        order = np.argsort(slots)
        order = order[slots[order] >= 0]
        found = np.zeros(len(slots))
        found[order] = self._cosines(slots[order], unit(vector, self.dimensions, None))
        return found

    def vectors(self, keys: Sequence[int] | Keys) -> Vectors:
        """Return the stored unit vector for each key, zeros for a key that is not indexed."""
        slots = self._rows.slots(_as_keys(keys))
        order = np.argsort(slots)
        order = order[slots[order] >= 0]
        found = np.zeros((len(slots), self.dimensions), np.float32)
        found[order] = self._rows.vectors(slots[order])
        return found

    @property
    def nbytes(self) -> int:
        """The bytes that the vectors, their bits and their keys take."""
        return self._rows.nbytes

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Save everything into a folder; a crash leaves either the old state or the new one."""
        save_rows(self._rows, Path(folder))

    @classmethod
    def load(
        cls,
        folder: str | os.PathLike[str],
        *,
        verify: bool = True,
        exact_up_to: int = EXACT_UP_TO,
        candidates: int | None = None,
    ) -> DenseIndex:
        """Open a saved index. The file is mapped, not read; changes stay in memory until saved.

        Args:
            folder: The folder passed to ``save``.
            verify: Read everything once and compare the checksums.
            exact_up_to: As for a new index.
            candidates: As for a new index.

        Raises:
            FileNotFoundError: If the folder has no index.
            CorruptData: If the files are damaged.
        """
        rows = load_rows(Path(folder), verify=verify)
        index = cls(rows.shape.dimensions, exact_up_to=exact_up_to, candidates=candidates)
        index._hold(rows)
        return index

    def check(self) -> None:
        """Verify every invariant. Reads everything; meant for tests."""
        rows = self._rows
        slots = np.sort(rows.occupied())
        assert len(slots) == len(self)
        assert len(set(rows.free)) == len(rows.free)
        assert (rows.slots(rows.keys[slots].astype(np.int64)) == slots).all()
        assert len(np.unique(rows.ages[slots])) == len(slots)
        assert rows.hidden[rows.free].all()
        hidden = rows.hidden[slots] > 0
        assert rows.zeros == hidden.sum()
        vectors = rows.vectors(slots)
        assert (hidden == ~vectors.any(axis=1)).all()
        assert np.allclose(np.linalg.norm(vectors[~hidden], axis=1), 1, atol=1e-5)
        coarse = rows.shape.coarse
        for chunk, places, which in rows.parts(slots):
            words = pack(vectors[which])
            assert (words[:, :coarse] == chunk.coarse[:, places].T).all()
            assert (words[:, coarse:] == chunk.fine[places]).all()

    def _hold(self, rows: Rows) -> None:
        self._rows = rows
        self._scanner = Scanner(rows)

    def _wanted(self, size: int) -> int:
        if self.candidates is not None:
            return self.candidates
        return max(_LEAST_CANDIDATES, min(_MOST_CANDIDATES, size // _CANDIDATE_SHARE))

    def _allowed(
        self, allow: NDArray[np.bool_] | None, among: Sequence[int] | Keys | None
    ) -> Slots | None:
        """Return the slots that a search may return, rising, or ``None`` for all."""
        if allow is None and among is None:
            return None
        if allow is not None and among is not None:
            raise InvalidInput("pass either allow or among, not both")
        if allow is not None and (allow.ndim != 1 or allow.dtype != np.bool_):
            raise InvalidInput("allow must be a flat array of bool, with a value for each key")
        keys = np.flatnonzero(allow) if allow is not None else _as_keys(among)
        slots = np.sort(self._rows.slots(keys))
        slots = slots[np.diff(slots, prepend=-1) > 0]  # distinct, without -1
        return slots[self._rows.hidden[slots] == 0] if self._rows.zeros else slots

    def _scan(self, query: Vectors) -> tuple[Slots, Vectors]:
        """Compare every vector."""
        rows = self._rows
        products = np.zeros(rows.used, np.float32)  # BLAS may multiply the old content by zero
        for chunk, span in rows.stretches():
            np.dot(chunk.vectors[: span.stop - span.start], query, out=products[span])
        if not rows.has_hidden:
            return np.arange(rows.used), products
        slots = np.flatnonzero(rows.hidden[: rows.used] == 0)
        return slots, products[slots]

    def _best(
        self, slots: Slots, products: Vectors, query: Vectors, top_k: int
    ) -> list[tuple[int, float]]:
        """Return the best with exact cosines, so that equal vectors tie in any slot."""
        if len(slots) > top_k:
            worst = np.partition(products, -top_k)[-top_k]
            slots = slots[products >= worst - _ROUNDING]
        cosines = self._cosines(slots, query)
        order = np.lexsort((-self._rows.ages[slots], -cosines))[:top_k]
        keys = self._rows.keys[slots[order]]
        return list(zip(keys.tolist(), cosines[order].tolist(), strict=True))

    def _cosines(self, slots: Slots, query: Vectors) -> Scores:
        """Return the cosines of rising slots, each summed the same way."""
        exact = query.astype(np.float64)
        found = np.empty(len(slots))
        for begin in range(0, len(slots), _AT_ONCE):
            vectors = self._rows.vectors(slots[begin : begin + _AT_ONCE])
            found[begin : begin + _AT_ONCE] = np.add.reduce(vectors * exact, axis=1)
        return found.clip(-1.0, 1.0)

    def _must_be_new(self, key: int) -> None:
        if type(key) is not int:
            raise TypeError(f"a key must be an int, got {type(key).__name__}")
        if not 0 <= key <= MAX_KEY:
            raise InvalidInput(f"key {key} is out of range; use one from 0 to {MAX_KEY}")
        if self._rows.slot(key) >= 0:
            raise InvalidInput(f"key {key} is already indexed; remove() it first")


def _as_keys(keys: ArrayLike | None) -> Keys:
    found = np.asarray(keys)
    if found.ndim != 1 or (len(found) and found.dtype.kind not in "iu"):
        raise InvalidInput("keys must be a flat sequence of ints")
    return found.astype(np.int64, copy=False)
