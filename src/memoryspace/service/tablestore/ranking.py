"""Ranking of candidates: by a ``Recall`` for words, by exact distances for vectors.

The scores of the index are not used: records that it does not have yet would have none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace as change
from tablestore import VectorMetricType

from ...retrieval.conditions import refusal
from ...retrieval.entries import Entry
from ...retrieval.hits import Why, WhyNot
from ...retrieval.recall import Recall
from ..search import Found, Query


class SearchCandidate(Struct, frozen=True):
    """A record that may be returned: its searchable entry, and its vector if it has one."""

    seq: int
    id: str
    session: str
    entry: Entry
    vector: list[float] | None = None


Pool = Mapping[int, SearchCandidate]


def by_words(make_recall: Callable[[], Recall], pool: Pool, query: Query) -> list[Found]:
    """Return the best matches by words, ties newest first."""
    hits = _recall(make_recall, pool).search(
        query.text,
        query.top_k,
        only=query.only,
        now=query.now,
        explain=query.explain,
        matching=not query.neighbours,
    )
    found = [
        change(_found(pool[int(hit.id)], hit.relevance, hit.why), by_meaning=False) for hit in hits
    ]
    return sorted(found, key=lambda each: (-each.score, -each.seq))


def why_not_by_words(
    make_recall: Callable[[], Recall], pool: Pool, query: Query, seq: int
) -> WhyNot:
    """Return why a search by words does not return a candidate."""
    answer = _recall(make_recall, pool).why_not(
        query.text,
        str(seq),
        query.top_k,
        only=query.only,
        now=query.now,
        matching=not query.neighbours,
    )
    return change(answer, by=tuple(pool[int(each)].id for each in answer.by))


def by_meaning(pool: Pool, query: Query, vector: Sequence[float], metric: object) -> list[Found]:
    """Return the nearest candidates, ties newest first."""
    held = [each for each in pool.values() if each.vector is not None]
    allowed = [each for each in held if refusal(query.only, each.entry) is None]
    if not allowed:
        return []
    scores = _likeness(np.array([each.vector for each in allowed]), np.array(vector), metric)
    found = [
        _found(each, score, None) for each, score in zip(allowed, scores.tolist(), strict=True)
    ]
    found.sort(key=lambda each: (-each.score, -each.seq))
    return [
        change(each, why=_why(each, place)) if query.explain else each
        for place, each in enumerate(found, 1)
    ]


def why_not_by_meaning(pool: Pool, ranked: Sequence[Found], query: Query, seq: int) -> WhyNot:
    """Return why a search by vectors does not return a candidate."""
    reason = refusal(query.only, pool[seq].entry)
    if reason is not None:
        return WhyNot("filtered", reason)
    places = [place for place, each in enumerate(ranked, 1) if each.seq == seq]
    if not places:
        return WhyNot("not matched", "it has no vector")
    place, why = places[0], _why(ranked[places[0] - 1], places[0])
    if place <= query.top_k:
        return WhyNot("found", f"it ranks {place}", place, why=why)
    by = tuple(each.id for each in ranked[: min(place - 1, 5)])
    detail = f"it ranks {place} and top_k is {query.top_k}"
    return WhyNot("outranked", detail, place, by, why)


def _recall(make_recall: Callable[[], Recall], pool: Pool) -> Recall:
    recall = make_recall()
    recall.add(pool[seq].entry for seq in sorted(pool))
    return recall


def _found(candidate: SearchCandidate, score: float, why: Why | None) -> Found:
    """Return a result. The score is rounded so that the last digits of a sum decide nothing."""
    rounded = float(f"{score:.9g}")
    return Found(candidate.seq, candidate.id, candidate.session, rounded, why)


def _why(found: Found, place: int) -> Why:
    return Why({"meaning": found.score}, {"vectors": place}, {}, found.score)


def _likeness(
    vectors: np.ndarray[tuple[int, int], np.dtype[np.float64]],
    asked: np.ndarray[tuple[int], np.dtype[np.float64]],
    metric: object,
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    if metric == VectorMetricType.VM_EUCLIDEAN:
        distances = np.linalg.norm(vectors - asked, axis=1)
        return np.asarray(1 / (1 + distances))
    products = vectors @ asked
    if metric == VectorMetricType.VM_DOT_PRODUCT:
        return np.asarray(products)
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(asked)
    return np.asarray(products / np.where(lengths > 0, lengths, 1))
