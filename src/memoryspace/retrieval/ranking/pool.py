"""``Pool``: the candidates for a question, with what both indexes say of them and their neighbours.

What follows in ranking looks at the pool alone, so its cost does not grow with the memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ..catalogue import NO_ROW, Catalogue, Rows
from ..dense import DenseIndex
from ..sparse import SparseIndex

Floats = NDArray[np.float64]
Number = TypeVar("Number", np.float32, np.float64)

REACH = 2  # neighbours on either side that are read along


@dataclass(frozen=True)
class Likeness:
    """The vectors of known rows, and their cosine to the question."""

    vectors: NDArray[np.float32]
    cosines: Floats


@dataclass(frozen=True)
class Pool:
    """Candidates. ``known`` are they and their neighbours; ``places`` says where in it each is.

    ``places[0]`` are the candidates, ``places[-1]`` those before them in their sessions, and so
    on; ``NO_ROW`` where a session ends.
    """

    rows: Rows
    known: Rows
    places: dict[int, Rows]
    words: Sequence[str]
    gains: Floats  # known row × word
    likeness: Likeness | None

    def __len__(self) -> int:
        return len(self.rows)

    def gains_at(self, distance: int) -> Floats:
        """Return the gains of the neighbours at a distance, word by word; 0 where there is none."""
        return self._at(distance, self.gains)

    def scores_at(self, distance: int) -> Floats:
        """Return what BM25 gives the neighbours at a distance."""
        scores: Floats = self.gains_at(distance).sum(axis=1)
        return scores

    def cosines_at(self, distance: int) -> Floats:
        """Return the cosine of the neighbours at a distance; 0 without vectors."""
        if self.likeness is None:
            return np.zeros(len(self.rows))
        return self._at(distance, self.likeness.cosines)

    def blended_cosine(self, shares: Mapping[int, float | Floats]) -> Floats:
        """Return the cosine of each candidate's vector with shares of its neighbours' added."""
        if self.likeness is None:
            return np.zeros(len(self.rows))
        blend, along = self._at(0, self.likeness.vectors), self.cosines_at(0)
        for distance, share in shares.items():
            weights = np.broadcast_to(share, along.shape)
            there = self._at(distance, self.likeness.vectors)
            blend += weights.astype(np.float32)[:, np.newaxis] * there
            along += weights * self.cosines_at(distance)
        lengths = np.sqrt(np.einsum("ij,ij->i", blend, blend))
        cosines: Floats = along / np.maximum(lengths, 1e-9)
        return cosines

    def _at(self, distance: int, column: NDArray[Number]) -> NDArray[Number]:
        """Return a copy of what a column says of the neighbours at a distance."""
        places = self.places[distance]
        found = column[places]
        found[places == NO_ROW] = 0
        return found


def gather(
    rows: Rows,
    text: str,
    vector: NDArray[np.float32] | None,
    catalogue: Catalogue,
    sparse: SparseIndex,
    dense: DenseIndex | None,
) -> Pool:
    """Ask both indexes about candidates and their neighbours."""
    around = dict(catalogue.neighbours(rows, REACH))
    known = np.unique(np.concatenate([rows, *around.values()]))
    known = known[known != NO_ROW]
    places = {
        distance: np.where(there == NO_ROW, NO_ROW, np.searchsorted(known, there))
        for distance, there in {0: rows, **around}.items()
    }
    table = sparse.gains(text, known)
    likeness = None
    if dense is not None and vector is not None:
        vectors = dense.vectors(known)
        likeness = Likeness(vectors, (vectors @ vector).astype(np.float64))
    return Pool(rows, known, places, table.words, table.gains, likeness)
