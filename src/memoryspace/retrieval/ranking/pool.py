"""``CandidatePool``: the candidates for a question and their neighbours, with both indexes' scores.

Later steps of ranking read the pool alone, so their cost does not grow with the memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..catalogue import NO_ROW, Catalogue, Rows
from ..dense.index import DenseIndex
from ..sparse.index import SparseIndex

Floats = NDArray[np.float64]
Places = Mapping[int, NDArray[np.int64]]  # distance → positions of the neighbours in some table

REACH = 2  # neighbours on either side that count as context
_DISTANCES = tuple(range(-REACH, REACH + 1))


@dataclass(frozen=True)
class PoolCosines:
    """Similarities of candidates and their direct neighbours, to the question and to each other.

    ``cosines`` are with the question, by distance. ``products`` are inner products of the vectors
    at two distances.
    """

    cosines: Mapping[int, Floats]
    products: Mapping[tuple[int, int], Floats]

    def blended(self, shares: Mapping[int, float | Floats]) -> Floats:
        """Return the cosine of each candidate's vector plus shares of its neighbours' vectors.

        The length of the sum follows from the products; the sum itself is never computed.
        """
        parts: dict[int, float | Floats] = {0: 1.0, **shares}
        along, square = np.zeros_like(self.cosines[0]), np.zeros_like(self.cosines[0])
        for distance, share in parts.items():
            along += share * self.cosines[distance]
        for (one, other), product in self.products.items():
            if one in parts and other in parts:
                square += (1 if one == other else 2) * parts[one] * parts[other] * product
        cosines: Floats = along / np.sqrt(np.maximum(square, 1e-18))
        return cosines

    def joined(self, other: PoolCosines, order: NDArray[np.int64]) -> PoolCosines:
        """Return both combined, in this order."""
        cosines = {
            at: np.concatenate([own, other.cosines[at]])[order] for at, own in self.cosines.items()
        }
        products = {
            at: np.concatenate([own, other.products[at]])[order]
            for at, own in self.products.items()
        }
        return PoolCosines(cosines, products)


@dataclass(frozen=True)
class CandidatePool:
    """The candidates, ``rows``, and ``known``: these and their neighbours.

    ``places`` are positions in ``known``: ``places[0]`` of the candidates, ``places[-1]`` of the
    rows before them in their sessions, and so on; ``NO_ROW`` where a session ends.
    """

    rows: Rows  # rising
    known: Rows  # neighbours are adjacent
    places: Places
    words: Sequence[str]
    gains: Floats  # word × known row, with a last column of zeros for ``NO_ROW``
    likeness: PoolCosines | None

    def __len__(self) -> int:
        return len(self.rows)

    def joined(self, other: CandidatePool) -> CandidatePool:
        """Return both pools combined. They belong to one question and share no candidate."""
        order = np.argsort(np.concatenate([self.rows, other.rows]))
        likeness = None
        if self.likeness is not None and other.likeness is not None:
            likeness = self.likeness.joined(other.likeness, order)
        return CandidatePool(
            np.concatenate([self.rows, other.rows])[order],
            np.concatenate([self.known, other.known]),
            {at: _appended(self, other, at)[order] for at in self.places},
            self.words,
            np.concatenate([self.gains[:, :-1], other.gains], axis=1),
            likeness,
        )

    def gains_at(self, distance: int) -> Floats:
        """Return the gains of the neighbours at a distance, per word; 0 where there is none."""
        return self._gains_around[:, _DISTANCES.index(distance)].T

    @cached_property
    def window(self) -> Floats:
        """The best gain of each word in a candidate or any of its neighbours."""
        best: Floats = self._gains_around.max(axis=1).T
        return best

    @cached_property
    def _gains_around(self) -> Floats:
        """Gains by word, distance and candidate."""
        places = np.array([self.places[distance] for distance in _DISTANCES])
        return self.gains.take(places, axis=1)

    @cached_property
    def scores(self) -> Floats:
        """The BM25 scores of the candidates."""
        scores: Floats = self.gains_at(0).sum(axis=1)
        return scores

    @property
    def cosines(self) -> Floats:
        """The cosine of each candidate to the question; 0 without vectors."""
        return np.zeros(len(self.rows)) if self.likeness is None else self.likeness.cosines[0]


def gather(
    rows: Rows,
    text: str,
    vector: NDArray[np.float32] | None,
    catalogue: Catalogue,
    sparse: SparseIndex,
    dense: DenseIndex | None,
) -> CandidatePool:
    """Return the pool for candidates, given in rising order, with scores from both indexes."""
    around = {0: rows, **dict(catalogue.neighbours(rows, REACH))}
    known, places = _side_by_side(around, catalogue)
    table = sparse.gains(text, known)
    gains = np.zeros((len(table.words), len(known) + 1))
    gains[:, :-1] = table.gains.T
    likeness = None
    if dense is not None and vector is not None:
        likeness = _likeness(known, places, vector, dense)
    return CandidatePool(rows, known, places, table.words, gains, likeness)


def _appended(one: CandidatePool, other: CandidatePool, distance: int) -> NDArray[np.int64]:
    """Return the neighbours' positions in both tables, with the second table after the first."""
    there = other.places[distance]
    moved = np.where(there == NO_ROW, NO_ROW, there + len(one.known))
    return np.concatenate([one.places[distance], moved])


def _side_by_side(around: Mapping[int, Rows], catalogue: Catalogue) -> tuple[Rows, Places]:
    """Return candidates and neighbours in session order, and the position of each."""
    rising = catalogue.distinct(np.concatenate(list(around.values())))
    order = np.lexsort((catalogue.ages.take(rising), catalogue.sessions.take(rising)))
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    own = place.take(rising.searchsorted(around[0]))
    there = np.array(list(around.values()))
    places = own + np.array(list(around))[:, np.newaxis]
    places[there == NO_ROW] = NO_ROW
    return rising.take(order), dict(zip(around, places, strict=True))


def _likeness(
    known: Rows, places: Places, vector: NDArray[np.float32], dense: DenseIndex
) -> PoolCosines:
    """Compare the vectors of candidates and their direct neighbours."""
    is_near = np.zeros(len(known) + 1, np.bool_)
    for distance in (-1, 0, 1):
        is_near[places[distance]] = True
    is_near[NO_ROW] = False
    near = np.cumsum(is_near) - 1  # positions among these; neighbours are still adjacent
    vectors = dense.vectors(known[is_near[:-1]])
    before, own, after = (
        np.where(places[distance] == NO_ROW, NO_ROW, near[places[distance]])
        for distance in (-1, 0, 1)
    )
    lengths, beside, apart = (_products(vectors, distance) for distance in (0, 1, 2))
    # Every row is summed the same way: with a matrix product, equal texts could differ by rounding.
    cosines = np.append(np.einsum("ij,j->i", vectors, vector).astype(np.float64), 0.0)
    products = {
        (0, 0): lengths[own],
        (-1, -1): lengths[before],
        (1, 1): lengths[after],
        (-1, 0): beside[before],
        (0, 1): beside[np.where(after == NO_ROW, NO_ROW, own)],
        (-1, 1): apart[np.where(after == NO_ROW, NO_ROW, before)],
    }
    return PoolCosines({-1: cosines[before], 0: cosines[own], 1: cosines[after]}, products)


def _products(vectors: NDArray[np.float32], distance: int) -> Floats:
    """Return the inner product of each vector with the one ``distance`` later; 0 at the end."""
    found = np.zeros(len(vectors) + 1)
    pairs = max(0, len(vectors) - distance)
    found[:pairs] = np.einsum("ij,ij->i", vectors[:pairs], vectors[distance:])
    return found
