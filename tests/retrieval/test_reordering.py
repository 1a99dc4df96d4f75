"""Rerankers and variety: what may change an order after the sum, and what it says about it."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from memoryspace.errors import InvalidInput
from memoryspace.retrieval import Entry, Recall, default_ranking

TEXTS = {
    "a": "the cat sat on the mat",
    "b": "the cat sat on the mat again",
    "c": "the cat is called Tom",
    "d": "dogs bark at the cat",
}


def filled(**options: object) -> Recall:
    recall = Recall(embedder=None, **options)  # type: ignore[arg-type]  # passed on
    recall.add(Entry(name, text) for name, text in TEXTS.items())
    return recall


def by_length(question: str, texts: Sequence[str]) -> list[float]:
    return [float(len(text)) for text in texts]


def test_a_reranker_orders_the_best() -> None:
    hits = filled(reranker=by_length).search("cat mat", 4, explain=True)
    assert [hit.id for hit in hits] == ["b", "a", "c", "d"]
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    for hit in hits:
        assert hit.why is not None
        assert sum(hit.why.signals.values()) == pytest.approx(hit.score)


def test_a_reranker_reads_only_so_many() -> None:
    seen: list[int] = []

    def counting(question: str, texts: Sequence[str]) -> list[float]:
        seen.append(len(texts))
        return by_length(question, texts)

    recall = filled(reranker=counting, ranking=replace(default_ranking(), reranked=2))
    assert len(recall.search("cat", 4)) == 4
    assert seen == [2]
    assert recall.search("nothing of this kind") == []
    assert seen == [2]


def failing(question: str, texts: Sequence[str]) -> list[float]:
    raise OSError("no model")


@pytest.mark.parametrize(
    "wrong", [failing, lambda q, t: [1.0], lambda q, t: [float("nan")] * len(t), lambda q, t: None]
)
def test_a_failing_reranker_leaves_the_order(
    wrong: object, caplog: pytest.LogCaptureFixture
) -> None:
    expected = [hit.id for hit in filled().search("cat mat", 4)]
    with caplog.at_level(logging.WARNING):
        found = [hit.id for hit in filled(reranker=wrong).search("cat mat", 4)]
    assert found == expected
    assert "reranker failed" in caplog.text


def test_variety_lets_another_thing_go_before_the_same_once_more() -> None:
    plain = [hit.id for hit in filled().search("cat sat mat", 4)]
    assert plain.index("b") < plain.index("c")
    varied = filled(ranking=replace(default_ranking(), diversity=0.7))
    hits = varied.search("cat sat mat", 4, explain=True)
    found = [hit.id for hit in hits]
    assert found[0] == plain[0]
    assert max(found.index("a"), found.index("b")) > found.index("c")
    assert sorted(found) == sorted(plain)
    for hit in hits:
        assert hit.why is not None
        assert sum(hit.why.signals.values()) == pytest.approx(hit.score)


@pytest.mark.parametrize(
    "wrong",
    [
        {"diversity": -0.1},
        {"diversity": 1.1},
        {"reranked": 0},
        {"candidates": 0},
        {"whole": 0},
        {"half_life": 0},
    ],
)
def test_unusable_rankings_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        replace(default_ranking(), **wrong)


def test_a_weight_must_be_a_number_and_a_signal_known() -> None:
    with pytest.raises(InvalidInput, match="'words'"):
        replace(default_ranking(), words={"words": float("nan")})
    with pytest.raises(InvalidInput, match="'owm'"):
        default_ranking().only("owm")


def test_a_ranking_by_one_signal_alone_and_without_one() -> None:
    recall = filled()
    (best, *_) = recall.search("cat mat", explain=True, ranking=default_ranking().only("words"))
    assert best.why is not None
    assert set(best.why.signals) == {"words"}
    (best, *_) = recall.search("cat mat", explain=True, ranking=default_ranking().without("words"))
    assert best.why is not None
    assert "words" not in best.why.signals
    assert "words with the reply" in best.why.signals
