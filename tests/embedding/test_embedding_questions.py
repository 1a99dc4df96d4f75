"""Wherever a question is embedded, it is embedded as one, and what is remembered is not."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from memoryspace.embedding import TellsQuestions
from memoryspace.retrieval import Entry, Recall, SimilarityRetriever
from memoryspace.service.mem0.providers import EmbedderForMem0
from memoryspace.service.search.postgres.vectors import VectorsArm
from memoryspace.store.tablestore.embedding import Vectorizer


class Apart:
    """An embedder that tells questions from passages, and notes what it is asked."""

    name = "apart/2"
    dimensions = 2
    scripts: frozenset[str] | None = None

    def __init__(self) -> None:
        self.said: list[str] = []
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.said += texts
        return np.array([[1.0, 0.0]] * len(texts), np.float32)

    def embed_questions(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked += texts
        return np.array([[0.6, 0.8]] * len(texts), np.float32)


class Thing(NamedTuple):
    id: str
    payload: str


@pytest.fixture
def apart() -> Apart:
    return Apart()


def test_by_a_recall(apart: Apart) -> None:
    assert isinstance(apart, TellsQuestions)
    recall = Recall(embedder=apart)
    recall.add([Entry("a", "tea")])
    (hit,) = recall.search("drink", explain=True)
    assert hit.why is not None
    assert hit.why.likeness == pytest.approx(0.6)
    assert (apart.said, apart.asked) == (["tea"], ["drink"])


def test_by_a_similarity_retriever(apart: Apart) -> None:
    retriever = SimilarityRetriever[Thing](apart)
    retriever.index(Thing("a", "tea"))
    assert retriever.query("drink", 1)
    assert (apart.said, apart.asked) == (["tea"], ["drink"])


async def test_by_a_search_in_postgres(apart: Apart) -> None:
    arm = VectorsArm(apart, lambda: 0.0)
    found = await arm.vector_of("drink")
    assert found is not None
    assert found.tolist() == pytest.approx([0.6, 0.8])
    assert (apart.said, apart.asked) == ([], ["drink"])


def test_by_a_search_in_tablestore(apart: Apart) -> None:
    vectors = Vectorizer(apart, 2)
    assert vectors.of_texts(["tea"]) == [[1.0, 0.0]]
    assert vectors.of_questions(["drink"])[0] == pytest.approx([0.6, 0.8])
    assert (apart.said, apart.asked) == (["tea"], ["drink"])


def test_by_mem0(apart: Apart) -> None:
    model = EmbedderForMem0(SimpleNamespace(model=apart))
    assert model.embed("tea", "add") == [1.0, 0.0]
    assert model.embed("drink", "search") == pytest.approx([0.6, 0.8])
    assert (apart.said, apart.asked) == (["tea"], ["drink"])
