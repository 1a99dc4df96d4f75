"""Answers beside gold ones, and rerankers beside the order they are given."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryspace.embedding import MiniLMEmbedder, StaticEmbedder
from memoryspace.errors import InvalidInput, MissingExtra
from memoryspace.evaluation.answers import exact_match, f1, pieces
from memoryspace.evaluation.rerankers import TokenReranker, WordReranker, blended, reranker_for

TEXTS = (
    "The weather was fine all week.",
    "My dog Bruno had to see the veterinarian.",
    "We talked about the budget.",
    "The car is red.",
)


@pytest.mark.parametrize(
    ("answer", "gold", "same"),
    [
        ("The Second Battle, of Bull Run!", "second battle of bull run", 1.0),
        ("a cat", "The cat.", 1.0),
        ("50", "$50", 1.0),
        ("cat", "cats", 0.0),
        ("光荣 和 ω-force", "光荣和ω-force", 1.0),
        ("２０２３年", "2023年", 1.0),
        ("", "cat", 0.0),
    ],
)
def test_an_answer_is_exact_but_for_case_articles_and_punctuation(
    answer: str, gold: str, same: float
) -> None:
    assert exact_match(answer, [gold]) == same


@pytest.mark.parametrize(
    ("answer", "gold", "expected"),
    [
        ("Lisbon", ["Lisbon"], 1.0),
        ("in Lisbon, Portugal", ["Lisbon"], 0.5),
        ("Paris", ["Lisbon"], 0.0),
        ("red red", ["red car"], 0.5),
        ("the", ["a"], 1.0),
        ("", ["Lisbon"], 0.0),
        ("东京大学", ["东京"], 2 / 3),
        ("Rome", ["Paris", "old Rome"], 2 / 3),
    ],
)
def test_f1_counts_shared_words_and_in_chinese_characters(
    answer: str, gold: list[str], expected: float
) -> None:
    assert f1(answer, gold) == pytest.approx(expected)


def test_words_and_characters_may_stand_side_by_side() -> None:
    assert pieces("The GPT-4 模型, won!") == ["gpt4", "模", "型", "won"]


@given(st.text(max_size=30), st.text(max_size=30))
def test_f1_is_a_share_both_ways_and_whole_for_an_exact_answer(answer: str, gold: str) -> None:
    assert f1(answer, [gold]) == pytest.approx(f1(gold, [answer]))
    assert 0 <= exact_match(answer, [gold]) <= f1(answer, [gold]) <= 1


@pytest.mark.parametrize("gold", [[], "text"])
def test_without_a_gold_answer_nothing_is_judged(gold: list[str] | str) -> None:
    with pytest.raises(InvalidInput, match="gold answer"):
        f1("text", gold)


# -- rerankers -----------------------------------------------------------------------------------


def test_place_and_score_count_the_same() -> None:
    assert blended([]) == []
    first, second, third = blended([0.1, 0.9, 0.5])
    assert second > first
    assert third < first
    assert blended([3.0, 2.0, 1.0]) == sorted(blended([3.0, 2.0, 1.0]), reverse=True)


def test_shared_words_bring_a_text_forward_rare_ones_more() -> None:
    texts = ["no such thing", "where the tandem is", "the car is here", "the bike"]
    scores = WordReranker()("Where is the tandem?", texts)
    assert max(range(4), key=scores.__getitem__) == 1


def test_tokens_bring_forward_what_is_meant() -> None:
    try:
        embedder = MiniLMEmbedder()
    except MissingExtra:
        pytest.skip("the weights of all-MiniLM-L6-v2 are not installed")
    reranker = TokenReranker(embedder)
    scores = reranker("Which pet was ill?", TEXTS)
    assert scores[1] == max(scores)
    assert reranker("Which pet was ill?", TEXTS) == scores, "what was kept says the same"
    assert reranker("Which pet?", ["", ""]) == blended([0.0, 0.0])
    assert isinstance(reranker_for(embedder)[1], TokenReranker)


def test_every_token_has_a_vector_whatever_stands_beside_the_text() -> None:
    try:
        embedder = MiniLMEmbedder()
    except MissingExtra:
        pytest.skip("the weights of all-MiniLM-L6-v2 are not installed")
    rows = embedder.embed_tokens(["red cars", "", "a much longer text, with more tokens in it"])
    assert [len(each) for each in rows] == [2, 0, 11]
    for each in rows:
        assert (each**2).sum(axis=1) == pytest.approx([1.0] * len(each), abs=1e-5)
    together = embedder.embed_tokens(["a", "red cars"])[1]
    assert together == pytest.approx(rows[0], abs=1e-5)


def test_without_token_vectors_words_rerank() -> None:
    assert isinstance(reranker_for(None)[1], WordReranker)
    try:
        static = StaticEmbedder()
    except MissingExtra:
        return
    name, reranker = reranker_for(static)
    assert isinstance(reranker, WordReranker)
    assert "words" in name
