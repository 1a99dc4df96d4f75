"""What of a question was never mentioned, and what that does to relevance."""

from __future__ import annotations

import pytest

from memoryspace.retrieval import Entry, Recall
from memoryspace.retrieval.ranking.topic import terms_of, unknown_share


def said(*texts: str, personal: bool = True) -> Recall:
    recall = Recall(embedder=None, personal=personal)
    recall.add([Entry(id=str(at), text=text, role="user") for at, text in enumerate(texts)])
    return recall


def first(recall: Recall, question: str) -> float:
    return recall.search(question)[0].relevance


@pytest.mark.parametrize(
    ("question", "about"),
    [
        ("What is the name of my dentist?", ["dentist"]),
        ("in which city do I live", []),
        ("what shoe size do I take, and what shoes?", ["shoe", "size"]),
        ("我公公多大年纪", ["公公"]),
        ("我的体重是多少", ["体重"]),
        ("", []),
    ],
)
def test_words_of_asking_are_no_topic(question: str, about: list[str]) -> None:
    assert [each.text for each in terms_of(question, {})] == about


def test_a_word_nobody_used_counts_like_the_rarest() -> None:
    terms = terms_of("which church in Leeds", {"Leeds": 2.0, "unasked": 4.0})
    assert [(each.text, each.weight, each.is_known) for each in terms] == [
        ("church", 1.0, False),
        ("Leeds", 0.5, True),
    ]
    assert unknown_share(terms) == pytest.approx(2 / 3)
    assert unknown_share([]) == 0


def test_without_borders_between_words_pairs_that_are_known_cover_their_characters() -> None:
    terms = terms_of("可可体重", {"可可": 1.0})
    assert [(each.text, each.is_known) for each in terms] == [("可可", True), ("体重", False)]


@pytest.mark.parametrize("personal", [False, True])
def test_a_hit_is_less_relevant_if_what_is_asked_about_was_never_mentioned(personal: bool) -> None:
    recall = said(
        "I bought a scooter in Leeds.", "We ate soup.", "It rained all day.", personal=personal
    )
    asked = first(recall, "Where did I buy the scooter?")
    beside = first(recall, "Which dentist repaired the scooter?")
    assert asked > beside


def test_another_word_for_a_matter_or_a_person_is_no_gap() -> None:
    recall = said("My hubby Tom likes jazz.", "I rent a bungalow by the sea.", "It rained all day.")
    husband = recall.search("What music does my husband like?", explain=True)[0]
    assert husband.entry.id == "0"
    assert first(recall, "What is my husband called?") > first(recall, "What is my dentist called?")
    assert first(recall, "What is my residence?") > first(recall, "What is my dentist?")
