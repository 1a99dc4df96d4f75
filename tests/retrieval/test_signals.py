"""The signals one by one: small functions of numbers and texts."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from memoryspace.retrieval import Entry
from memoryspace.retrieval.ranking import traits as kinds
from memoryspace.retrieval.ranking.signals import (
    best_of_session,
    date_match,
    phrase_signal,
    recency,
    share_of_best,
)
from memoryspace.retrieval.ranking.traits import (
    BY_USER,
    INSTRUCTS,
    LENGTH_ENOUGH,
    PREFERS,
    TELLS,
    TELLS_NUMBER,
    TELLS_TIME,
    fullness_of,
    traits_of,
)

DAY = 86400.0


def floats(*values: float) -> NDArray[np.float64]:
    return np.array(values, np.float64)


def traits(text: str, role: str | None = "user") -> int:
    return traits_of(Entry("a", text, role=role))


# -- traits ----------------------------------------------------------------------------------------


def test_only_a_user_is_one() -> None:
    assert traits("hello") & BY_USER
    assert not traits("hello", "assistant") & BY_USER
    assert not traits("hello", None) & BY_USER


@pytest.mark.parametrize("text", ["It rains.", "Is it? Yes.", "does my cat sleep?", "我的猫在吗？"])
def test_it_tells_something(text: str) -> None:
    assert traits(text) & TELLS


@pytest.mark.parametrize(
    "text", ["Does it rain?", "下雨吗？", "Is it this one? [a photo of a cat]", "Really?  \n"]
)
def test_it_only_asks(text: str) -> None:
    assert not traits(text) & TELLS


@pytest.mark.parametrize(
    "text",
    [
        "Always answer in French.",
        "Thanks! Please always use metric units",
        "Never use emojis.",
        "From now on call me Sam",
        "When I ask for code, add types.",
        "Whenever I ask about food, mention allergies.",
        "remember to cite sources",
        "以后都要用中文回答",
        "从现在起叫我小明",
        "不要再用表情符号",
    ],
)
def test_a_standing_instruction_is_known(text: str) -> None:
    assert traits(text) & INSTRUCTS
    assert not traits(text, "assistant") & INSTRUCTS


@pytest.mark.parametrize("text", ["Never, ever use emojis.", "Always: metric units."])
def test_a_standing_instruction_is_known_with_its_commas(text: str) -> None:
    assert traits(text) & INSTRUCTS


@pytest.mark.parametrize(
    "text",
    [
        "I always go there by bus",
        "it never rains here",
        "the cat sleeps",
        "",
        "Never mind.",
        "Never mind, I found it",
        "Never been to Paris.",
        "Always a pleasure!",
        "Whenever you are ready",
    ],
)
def test_what_sounds_like_an_instruction_may_be_none(text: str) -> None:
    assert not traits(text) & INSTRUCTS


@pytest.mark.parametrize(
    "text",
    [
        "I prefer tea",
        "I'd rather walk",
        "I really love hiking",
        "My favourite colour is red",
        "I've decided on blue",
        "我更喜欢喝茶",
        "我最讨厌下雨",
        "我决定去北京",
    ],
)
def test_a_preference_is_known(text: str) -> None:
    assert traits(text) & PREFERS
    assert not traits(text, "assistant") & PREFERS
    assert not traits("the tea is hot; 茶很烫") & PREFERS


@pytest.mark.parametrize(
    "text", ["we met yesterday", "two years ago", "on Friday", "in 2021", "昨天", "上周见", "3月"]
)
def test_a_time_is_known_whoever_says_it(text: str) -> None:
    assert traits(text) & TELLS_TIME
    assert traits(text, None) & TELLS_TIME
    assert not traits("the cat sleeps; 猫在睡觉") & TELLS_TIME


@pytest.mark.parametrize("text", ["it has 7", "three of them", "twice", "三只猫", "两个"])
def test_a_number_is_known(text: str) -> None:
    assert traits(text) & TELLS_NUMBER
    assert not traits("the cat sleeps; 猫在睡觉") & TELLS_NUMBER


@given(st.text(max_size=100))
def test_traits_fit_into_a_byte(text: str) -> None:
    assert 0 <= traits(text) < 64


# -- fullness --------------------------------------------------------------------------------------


def test_fullness_grows_with_the_words_up_to_enough() -> None:
    grown = [fullness_of("word " * count) for count in range(0, 60, 5)]
    assert grown == sorted(grown)
    assert (grown[0], grown[-1]) == (0.0, 1.0)
    assert fullness_of("word " * LENGTH_ENOUGH) == 1.0
    assert fullness_of("word " * (LENGTH_ENOUGH // 2)) == 0.5


def test_two_ideographs_count_as_a_word() -> None:
    assert fullness_of("猫" * LENGTH_ENOUGH) == 0.5
    assert fullness_of("猫" * 2 * LENGTH_ENOUGH) == 1.0


def test_a_mixed_text_is_no_shorter_than_its_parts() -> None:
    assert fullness_of("word " * 40 + "猫") == 1.0
    assert fullness_of("word " * 15 + "猫" * 30) == pytest.approx(1.0, abs=0.05)


@given(st.text(max_size=200))
def test_fullness_is_a_share(text: str) -> None:
    assert 0.0 <= fullness_of(text) <= 1.0


# -- dates -----------------------------------------------------------------------------------------


def span(first: float, last: float) -> tuple[float, float]:
    return first * DAY, last * DAY


def test_a_time_within_what_is_asked_matches() -> None:
    assert date_match([span(10, 11)], span(10, 11)) == 1.0
    assert date_match([span(10, 17)], span(12, 13)) == 1.0
    assert date_match([span(10, 11)], span(5, 20)) == 1.0


def test_what_only_touches_does_not_match() -> None:
    assert date_match([span(10, 11)], span(11, 12)) == 0.0
    assert date_match([span(10, 11)], span(9, 10)) == 0.0
    assert date_match([], span(9, 10)) == 0.0


def test_a_narrow_period_says_more_than_a_wide_one() -> None:
    worths = [date_match([span(0, days)], span(0, 1)) for days in (1, 7, 31, 92, 365)]
    assert worths == sorted(worths, reverse=True)
    assert worths[0] == worths[1] == 1.0
    assert len(set(worths)) == 4
    assert worths[-1] > 0


def test_the_best_of_several_periods_counts() -> None:
    assert date_match([span(0, 365), span(3, 4), span(50, 51)], span(3, 4)) == 1.0


# -- shares, sessions, recency, phrases ------------------------------------------------------------


def test_the_best_has_all_and_the_others_a_share() -> None:
    assert share_of_best(floats(1, 4, 2)).tolist() == [0.25, 1.0, 0.5]
    assert share_of_best(floats(-1, 2)).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("values", [floats(), floats(0, 0), floats(-3, -1)])
def test_where_nobody_has_any_nobody_has_a_share(values: NDArray[np.float64]) -> None:
    assert share_of_best(values).tolist() == [0.0] * len(values)


@given(st.lists(st.floats(-1e6, 1e6), max_size=20))
def test_shares_are_from_0_to_1_and_keep_the_order(values: list[float]) -> None:
    shares = share_of_best(floats(*values))
    assert ((shares >= 0) & (shares <= 1)).all()
    order = np.argsort(values, kind="stable")
    assert (np.diff(shares[order]) >= 0).all()


def test_a_session_has_the_best_of_its_own() -> None:
    sessions = np.array([3, 0, 3, -1, 0, -1])
    values = floats(1, 5, 4, 9, 2, 7)
    assert best_of_session(values, sessions).tolist() == [4, 5, 4, 9, 5, 7]


def test_without_any_session_each_has_its_own() -> None:
    assert best_of_session(floats(2, 1), np.array([-1, -1])).tolist() == [2, 1]
    assert best_of_session(floats(), np.array([], np.int64)).tolist() == []


@given(st.lists(st.tuples(st.floats(0, 100), st.integers(-1, 4)), min_size=1, max_size=20))
def test_a_session_is_never_worse_than_who_is_in_it(pairs: list[tuple[float, int]]) -> None:
    values, sessions = floats(*(pair[0] for pair in pairs)), np.array([pair[1] for pair in pairs])
    found = best_of_session(values, sessions)
    expected = [
        value if session < 0 else max(v for v, s in pairs if s == session)
        for value, session in pairs
    ]
    assert found.tolist() == expected


def test_recency_halves_with_each_half_life() -> None:
    ages = floats(0, 10, 20, -5, np.nan, 1e300)
    assert recency(ages, 10.0).tolist() == [1.0, 0.5, 0.25, 1.0, 0.0, 0.0]


def test_phrases_count_as_a_share_in_whatever_case() -> None:
    texts = ["to BE or not", "be or", "nothing"]
    found = phrase_signal(["to be", "or not"], np.array([2, 0, 1]), lambda row: texts[row])
    assert found["phrase"].tolist() == [0.0, 1.0, 0.0]
    assert phrase_signal([], np.array([0]), lambda row: texts[row]) == {}
    assert len(phrase_signal(["x"], np.array([], np.int64), lambda row: texts[row])["phrase"]) == 0


@pytest.mark.parametrize(
    ("pattern", "signs"),
    [
        (kinds._INSTRUCTS, kinds._INSTRUCTS_SIGNS),
        (kinds._PREFERS, kinds._PREFERS_SIGNS),
        (kinds._SOME_DAY, ("day",)),
        (kinds._AGO, (" ago", " back")),
    ],
    ids=["instructs", "prefers", "some day", "ago"],
)
@given(data=st.data())
@settings(max_examples=200, deadline=None)
def test_a_sign_stands_wherever_its_pattern_matches(
    pattern: re.Pattern[str], signs: tuple[str, ...], data: st.DataObject
) -> None:
    text = data.draw(st.from_regex(pattern))
    assert any(sign in text for sign in signs)
