"""``Pool``: the candidates for a question, with what both indexes say of them and their neighbours.

What follows in ranking looks at the pool alone, so its cost does not grow with the memory.
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
Places = Mapping[int, NDArray[np.int64]]  # distance → where in some table the neighbours stand

REACH = 2  # neighbours on either side that are read along
_DISTANCES = tuple(range(-REACH, REACH + 1))


@dataclass(frozen=True)
class Likeness:
    """How candidates and those right beside them are like the question, and like one another.

    ``cosines`` are with the question, by distance; ``products`` of the vectors at two distances.
    """

    cosines: Mapping[int, Floats]
    products: Mapping[tuple[int, int], Floats]

    def blended(self, shares: Mapping[int, float | Floats]) -> Floats:
        """Return the cosine of each candidate's vector with shares of its neighbours' added.

        The length of a sum follows from the products: the sum itself is never made.
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

    def joined(self, other: Likeness, order: NDArray[np.int64]) -> Likeness:
        """Return both as one, in this order."""
        cosines = {
            at: np.concatenate([own, other.cosines[at]])[order] for at, own in self.cosines.items()
        }
        products = {
            at: np.concatenate([own, other.products[at]])[order]
            for at, own in self.products.items()
        }
        return Likeness(cosines, products)


@dataclass(frozen=True)
class Pool:
    """Candidates. ``known`` are they and their neighbours; ``places`` says where in it each is.

    ``places[0]`` are the candidates, ``places[-1]`` those before them in their sessions, and so
    on; ``NO_ROW`` where a session ends.
    """

    rows: Rows  # rising
    known: Rows  # neighbours side by side
    places: Places
    words: Sequence[str]
    gains: Floats  # word × known row, and a column of zeros at the end: at ``NO_ROW``
    likeness: Likeness | None

    def __len__(self) -> int:
        return len(self.rows)

    def joined(self, other: Pool) -> Pool:
        """Return both as one; they answer one question, and no candidate is in both."""
        order = np.argsort(np.concatenate([self.rows, other.rows]))
        likeness = None
        if self.likeness is not None and other.likeness is not None:
            likeness = self.likeness.joined(other.likeness, order)
        return Pool(
            np.concatenate([self.rows, other.rows])[order],
            np.concatenate([self.known, other.known]),
            {at: _behind(self, other, at)[order] for at in self.places},
            self.words,
            np.concatenate([self.gains[:, :-1], other.gains], axis=1),
            likeness,
        )

    def gains_at(self, distance: int) -> Floats:
        """Return the gains of the neighbours at a distance, word by word; 0 where there is none."""
        return self._gains_around[:, _DISTANCES.index(distance)].T

    @cached_property
    def window(self) -> Floats:
        """The best gain of each word, of a candidate or any of its neighbours."""
        best: Floats = self._gains_around.max(axis=1).T
        return best

    @cached_property
    def _gains_around(self) -> Floats:
        """Gains by word, distance and candidate."""
        places = np.array([self.places[distance] for distance in _DISTANCES])
        return self.gains.take(places, axis=1)

    @cached_property
    def scores(self) -> Floats:
        """What BM25 gives the candidates."""
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
) -> Pool:
    """Ask both indexes about candidates, which rise, and their neighbours."""
    around = {0: rows, **dict(catalogue.neighbours(rows, REACH))}
    known, places = _side_by_side(around, catalogue)
    table = sparse.gains(text, known)
    gains = np.zeros((len(table.words), len(known) + 1))
    gains[:, :-1] = table.gains.T
    likeness = None
    if dense is not None and vector is not None:
        likeness = _likeness(known, places, vector, dense)
    return Pool(rows, known, places, table.words, gains, likeness)


def _behind(one: Pool, other: Pool, distance: int) -> NDArray[np.int64]:
    """Return where the neighbours of both stand if the other's table follows the one's."""
    there = other.places[distance]
    moved = np.where(there == NO_ROW, NO_ROW, there + len(one.known))
    return np.concatenate([one.places[distance], moved])


def _side_by_side(around: Mapping[int, Rows], catalogue: Catalogue) -> tuple[Rows, Places]:
    """Put candidates and neighbours in the order of their sessions; tell where each stands."""
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
) -> Likeness:
    """Compare the vectors of candidates and of those right beside them."""
    is_near = np.zeros(len(known) + 1, np.bool_)
    for distance in (-1, 0, 1):
        is_near[places[distance]] = True
    is_near[NO_ROW] = False
    near = np.cumsum(is_near) - 1  # where each stands among these; still side by side
    vectors = dense.vectors(known[is_near[:-1]])
    before, own, behind = (
        np.where(places[distance] == NO_ROW, NO_ROW, near[places[distance]])
        for distance in (-1, 0, 1)
    )
    lengths, beside, apart = (_products(vectors, distance) for distance in (0, 1, 2))
    # Summed alike for every row: a product of matrices would part equal texts in the last digits.
    cosines = np.append(np.einsum("ij,j->i", vectors, vector).astype(np.float64), 0.0)
    products = {
        (0, 0): lengths[own],
        (-1, -1): lengths[before],
        (1, 1): lengths[behind],
        (-1, 0): beside[before],
        (0, 1): beside[np.where(behind == NO_ROW, NO_ROW, own)],
        (-1, 1): apart[np.where(behind == NO_ROW, NO_ROW, before)],
    }
    return Likeness({-1: cosines[before], 0: cosines[own], 1: cosines[behind]}, products)


def _products(vectors: NDArray[np.float32], distance: int) -> Floats:
    """Return the product of each vector with the one so many behind it; 0 at the end."""
    found = np.zeros(len(vectors) + 1)
    pairs = max(0, len(vectors) - distance)
    found[:pairs] = np.einsum("ij,ij->i", vectors[:pairs], vectors[distance:])
    return found
