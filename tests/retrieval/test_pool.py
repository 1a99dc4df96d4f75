"""The candidates of a question: looked up at once or in two goes, they are the same."""

from __future__ import annotations

import numpy as np
import pytest

from memoryspace.embedding import CallableEmbedder
from memoryspace.retrieval import Entry, Recall
from memoryspace.retrieval.ranking.pool import CandidatePool, gather


def _vector(text: str) -> list[float]:
    return [1.0 + text.count(letter) for letter in "aeiou"]


def recall_of(*, vectors: bool) -> Recall:
    embedder = CallableEmbedder(lambda texts: [_vector(text) for text in texts], "vowels", 5)
    recall = Recall(embedder=embedder if vectors else None)
    recall.add(
        Entry(
            str(n), f"tea number {n} in the {'garden' if n % 3 else 'house'}", session=str(n // 4)
        )
        for n in range(12)
    )
    return recall


def gathered(recall: Recall, rows: list[int]) -> CandidatePool:
    question = "tea in the garden"
    return gather(
        np.array(rows),
        question,
        recall.vectors.vector_of(question),
        recall.catalogue,
        recall.sparse,
        recall.vectors.index,
    )


@pytest.mark.parametrize("vectors", [False, True])
def test_pools_joined_are_the_pool_of_all(vectors: bool) -> None:
    recall = recall_of(vectors=vectors)
    joined = gathered(recall, [1, 4, 9]).joined(gathered(recall, [0, 5, 11]))
    whole = gathered(recall, [0, 1, 4, 5, 9, 11])
    assert joined.rows.tolist() == whole.rows.tolist()
    assert joined.words == whole.words
    for distance in (-2, -1, 0, 1, 2):
        assert joined.gains_at(distance).tolist() == whole.gains_at(distance).tolist()
    assert joined.window.tolist() == whole.window.tolist()
    assert joined.cosines.tolist() == whole.cosines.tolist()
    assert (joined.likeness is None) is not vectors
    if joined.likeness is not None and whole.likeness is not None:
        shares: dict[int, float] = {-1: 0.5, 1: 0.5}
        assert joined.likeness.blended({**shares}) == pytest.approx(
            whole.likeness.blended({**shares})
        )
