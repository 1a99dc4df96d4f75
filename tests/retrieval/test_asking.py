"""What a question asks for, read off its text in English and Chinese."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryspace.retrieval.ranking.asking import ParsedQuestion, ask, focus_of, named, quoted

NOW = datetime(2023, 5, 20, 12, tzinfo=UTC)


def asked(text: str, *speakers: str) -> ParsedQuestion:
    return ask(text, NOW, speakers)


# -- who is named ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("What did Ann say?", "Ann"),
        ("what did ANN say?", "ann"),
        ("Ann's cat", "Ann"),
        ("Ann’s cat", "Ann"),
        ("(Ann)", "Ann"),
        ("ask Mary Jane!", "Mary Jane"),
        ("does O'Neil know?", "O'Neil"),
        ("is user_1 here?", "user_1"),
        ("is C++ here?", "C++"),
        ("where is José?", "José"),
        ("小明昨天去哪儿了", "小明"),
        ("田中さんは？", "田中"),
    ],
)
def test_a_name_is_found_as_a_word(text: str, name: str) -> None:
    assert named(text, [name, "Somebody Else"]) == {name}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("the Anniversary", "Ann"),
        ("Joann came", "Ann"),
        ("Joséphine came", "José"),
        ("ann_1 came", "ann"),
        ("", "Ann"),
        ("anything", ""),
        ("any thing", " "),
    ],
)
def test_a_part_of_a_word_is_no_name(text: str, name: str) -> None:
    assert named(text, [name]) == frozenset()


def test_blanks_around_a_name_make_no_difference() -> None:
    assert named("Ann?", [" Ann "]) == {" Ann "}


def test_the_speakers_named_are_whom_the_question_is_about() -> None:
    assert asked("what did Ann eat?", "Ann", "Bob").speakers == {"Ann"}
    assert asked("what did they eat?", "Ann", "Bob").speakers == frozenset()
    assert asked("what did Ann eat?").speakers == frozenset()


def test_naming_everybody_is_naming_nobody() -> None:
    assert asked("did Ann meet Bob?", "Ann", "Bob").speakers == frozenset()
    assert asked("what did Ann eat?", "Ann").speakers == frozenset()
    assert asked("did Ann meet Bob?", "Ann", "Bob", "Eve").speakers == {"Ann", "Bob"}


@given(st.text(max_size=30), st.lists(st.text(max_size=5), max_size=4))
def test_names_are_always_some_of_those_given(text: str, names: list[str]) -> None:
    assert named(text, names) <= set(names)


# -- what is left of it ----------------------------------------------------------------------------


def test_names_and_talk_about_talking_are_left_out() -> None:
    assert focus_of("What did Ann's cat eat?", ["Ann"]) == "What did cat eat?"
    assert focus_of("Can you please tell me where the cat is?", []) == "where the cat is?"
    assert focus_of("请告诉我猫在哪里", []) == "猫在哪里"


def test_a_question_of_nothing_else_stays_as_it_is() -> None:
    for text in ("Ann", "Ann?", "Can you tell me?", "", " ", "?!", "请告诉我"):
        assert focus_of(text, ["Ann"]) == text


def test_a_single_ideograph_is_something_left() -> None:
    assert focus_of("小明 猫", ["小明"]) == "猫"


def test_the_order_of_names_makes_no_difference() -> None:
    names = ["Ann", "Ann Lee", "Lee", "Lee Ann"]
    text = "What did Ann Lee and Lee Ann eat?"
    assert {focus_of(text, order) for order in permutations(names)} == {"What did and eat?"}


def test_keywords_leave_out_weak_words_if_others_are_left() -> None:
    assert asked("the different aspects of gardening").keywords == "the of gardening"
    assert asked("things").keywords == "things"
    assert asked("which order?").keywords == "which ?"


@given(st.text(max_size=60), st.lists(st.text(max_size=5), max_size=3))
def test_something_is_always_left_where_there_was_something(text: str, names: list[str]) -> None:
    question = ask(text, NOW, names)
    assert question.text == text
    assert bool(question.focus) == bool(text)
    assert bool(question.keywords) == bool(text)


# -- what it wants ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "where did I park?",
        "What is MY name?",
        "i've lost it, where?",
        "我的车停在哪里？",
        "咱家的猫呢",
    ],
)
def test_it_is_of_the_user(text: str) -> None:
    assert asked(text).of_user


@pytest.mark.parametrize(
    "text",
    [
        "where is the car?",
        "this mythical island",
        "what did you tell me about my car?",
        "what did you say I should do?",
        "remind me of my trip",
        "what was your advice to me?",
        "summarize my trips",
        "你上次给我推荐了什么？",
        "总结一下我的旅行",
        "",
    ],
)
def test_it_is_not_of_the_user(text: str) -> None:
    assert not asked(text).of_user


@pytest.mark.parametrize(
    ("text", "flag"),
    [
        ("Can you recommend a hotel?", "wants_advice"),
        ("any suggestions for dinner?", "wants_advice"),
        ("How should I cook it?", "wants_advice"),
        ("推荐一家餐厅", "wants_advice"),
        ("我该怎么做？", "wants_advice"),
        ("Summarize our talks", "wants_overview"),
        ("in which order did I visit them?", "wants_overview"),
        ("总结一下", "wants_overview"),
        ("按先后顺序列出", "wants_overview"),
        ("When was it?", "asks_when"),
        ("What year was it?", "asks_when"),
        ("how long ago?", "asks_when"),
        ("什么时候去的？", "asks_when"),
        ("这是哪年的事？", "asks_when"),
        ("How many cats?", "asks_number"),
        ("the number of cats", "asks_number"),
        ("有多少只猫？", "asks_number"),
        ("有几个人？", "asks_number"),
    ],
)
def test_it_is_read_what_is_wanted(text: str, flag: str) -> None:
    assert getattr(asked(text), flag) is True
    assert getattr(asked("the cat sleeps; 猫在睡觉"), flag) is False


def test_times_are_read_as_of_now() -> None:
    (span,) = asked("what happened yesterday?").times
    assert (span.start, span.end) == (datetime(2023, 5, 19, tzinfo=UTC), NOW.replace(hour=0))
    (span,) = asked("2021年3月4日发生了什么？").times
    assert span.start == datetime(2021, 3, 4, tzinfo=UTC)
    assert asked("what happened?").times == ()


# -- phrases ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "phrases"),
    [
        ('who said "to be or not"?', ("to be or not",)),
        ("“弯的” and 「角括号」 and 『双的』", ("弯的", "角括号", "双的")),
        ('"one two" and "three four"', ("one two", "three four")),
        ('" trimmed "', ("trimmed",)),
        ("don't and won't", ()),
        ('"a"', ()),
        ('""', ()),
        ('"   "', ()),
        ('an odd " one', ()),
        ('"' + "x" * 500 + '"', ()),
        ("", ()),
    ],
)
def test_what_stands_in_quotation_marks(text: str, phrases: tuple[str, ...]) -> None:
    assert quoted(text) == phrases
    assert asked(text).phrases == phrases


@given(st.text(alphabet='"“”「」 ab', max_size=60))
def test_a_phrase_stands_in_the_text(text: str) -> None:
    assert all(phrase and phrase in text for phrase in quoted(text))
