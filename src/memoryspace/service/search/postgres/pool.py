"""Candidates as a ``Recall`` that ranks them as if it held all of a user's rows.

Word frequencies, speakers and the neighbours of a candidate come from the database. The signals,
their weights and the order are those of the ``Recall``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any, cast

import numpy as np
from msgspec.structs import replace

from ....record import Record
from ....retrieval import Entry, Ranking, Recall, Reranker, SparseIndex
from ....retrieval.catalogue import Catalogue, Rows
from ....retrieval.entries import Only, indexed_text
from ....retrieval.personal import PersonalReader
from ....retrieval.ranking.profiles import Profiles
from ....retrieval.ranking.traits import BY_USER
from ....retrieval.vector_arm import VectorArm
from .candidates import IndexedRow
from .vectors import Floats
from .words import PoolWords, WordStatistics, terms_of


@dataclass(frozen=True)
class CandidatePool:
    """The candidates that a search found in the database, to be ranked.

    ``found`` are the candidates that may be returned. ``rows`` holds them and their neighbours, by
    seq. ``vector`` is the question's. ``facts`` are those derived from the candidates.
    """

    user: str
    statistics: WordStatistics
    speakers: Sequence[str]
    named: Collection[int]  # selected by an arm, or by a day or speaker in the question
    found: Mapping[int, tuple[Record, Entry]]
    rows: Mapping[int, IndexedRow]
    vector: Floats | None
    vectors: Mapping[int, Floats]
    facts: Mapping[int, tuple[Record, Entry]]

    def ranked(self, question: str, floor: float) -> Only:
        """Return the condition that selects the rows to rank.

        These are the candidates and those of their neighbours that are allowed but do not match.
        As in a ``Recall``, the best of all is the measure for the others; the neighbours are not
        returned.
        """
        tokens = {term.token for term in terms_of(self.user, question)}
        neighbours = (
            seq
            for seq, row in self.rows.items()
            if seq not in self.found
            and seq not in self.facts
            and row.is_allowed
            and tokens.isdisjoint(row.words.tokens)
            and not self._is_like(seq, floor)
        )
        return Only(ids=frozenset(map(str, (*self.found, *neighbours))))

    def _is_like(self, seq: int, floor: float) -> bool:
        vector = self.vectors.get(seq)
        return (
            self.vector is not None and vector is not None and bool(vector @ self.vector >= floor)
        )


def recall_of(
    candidates: CandidatePool,
    *,
    ranking: Ranking,
    reranker: Reranker | None,
    zone: tzinfo,
    floor: float,
    personal: bool = False,
) -> Recall:
    """Return candidates as a ``Recall`` that considers all of them."""
    whole = replace(ranking, whole=max(ranking.whole, len(candidates.rows)))
    recall = Recall(
        embedder=None, ranking=whole, reranker=reranker, zone=zone, floor=floor, personal=personal
    )
    recall.catalogue = _PoolCatalogue(candidates.speakers)
    _fill(recall.catalogue, recall.profiles, candidates, recall.reader)
    counted = [row.words for row in candidates.rows.values()]
    words = PoolWords(candidates.user, candidates.statistics, counted)
    recall.sparse = cast(SparseIndex, words)  # all that ranking asks of one
    recall.vectors = cast(VectorArm, _PoolVectors(candidates))
    return recall


def _fill(
    catalogue: Catalogue,
    profiles: Profiles,
    candidates: CandidatePool,
    reader: PersonalReader | None,
) -> None:
    """Add the rows, oldest first, in the order of the conversation."""
    whole = {**candidates.facts, **candidates.found}
    profiles.traits = np.zeros(len(candidates.rows), np.uint8)
    profiles.fullness = np.zeros(len(candidates.rows))
    for seq, row in candidates.rows.items():
        if seq in whole:
            entry = whole[seq][1]
            number = catalogue.add(entry)
            profiles.add(number, entry, indexed_text(entry))
            if reader is not None:
                reader.facts.add(number, entry)
        else:  # of a neighbour only the speaker matters: a question is read with its reply
            number = catalogue.add(Entry(str(seq), "", session=row.session))
            profiles.traits[number] = BY_USER if row.role == "user" else 0


class _PoolCatalogue(Catalogue):
    """A catalogue that knows every speaker of the user's rows."""

    def __init__(self, speakers: Sequence[str]) -> None:
        super().__init__()
        self._speakers = list(speakers)

    def values_of(self, name: str) -> list[Any]:
        return list(self._speakers) if name == "speaker" else super().values_of(name)


class _PoolVectors:
    """The part of a ``VectorArm`` that ranking uses. It is its own index."""

    embedder = None

    def __init__(self, candidates: CandidatePool) -> None:
        self._vector = candidates.vector
        size = 0 if self._vector is None else len(self._vector)
        nothing = np.zeros(size, np.float32)
        found = [candidates.vectors.get(seq, nothing) for seq in candidates.rows]
        self._rows = np.array(found, np.float32).reshape(len(found), size)
        self._has = [seq in candidates.vectors for seq in candidates.rows]

    def __contains__(self, row: int) -> bool:
        return self._has[row]

    def vector_of(self, _: str) -> Floats | None:
        return self._vector

    @property
    def index(self) -> _PoolVectors | None:
        return None if self._vector is None else self

    def vectors(self, rows: Rows) -> Floats:
        return self._rows[rows]
