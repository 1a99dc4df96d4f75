"""What a search sees of a text, read slowly and read in batches, is the same."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memoryspace.retrieval.text.analysis import analyse, text_of, token_hash, tokens, words_of_long
from memoryspace.retrieval.text.characters import kind_of, kinds_table
from memoryspace.retrieval.text.words import words

# Any code point, lone surrogates and NUL included, with scripts that matter more often.
CHARACTERS = st.one_of(
    st.characters(codec=None, exclude_categories=()),
    st.sampled_from(
        "aZ09_ -.\n\0ßſİıΣςéＡ２ー々〇猫狗ねこネコ한국ｶﾞ\u0301\u3099😀\ud800\U00020000\U000e0100"
        "ⅧↃ٣яЯ\u00ad\u200d"
    ),
    st.sampled_from("stdmlrevnaBC123.,'’-_@:/ "),  # what holds words together, or parts them
)
TEXTS = st.text(CHARACTERS, max_size=30)


@settings(max_examples=300)
@given(st.lists(TEXTS, max_size=6))
@example(["", "", ""])
@example(["猫", "狗"])  # neighbours in the batch are no neighbours in a text
@example(["end", "begin"])
@example(["1,000", "000"])
@example(["don", "t"])
@example(["ends'", "s", "n't", "'s"])
@example(["IDs", "xx"])
def test_a_batch_is_analysed_as_its_texts_are_one_by_one(texts: list[str]) -> None:
    analysis = analyse(texts)
    found: list[Counter[int]] = [Counter() for _ in texts]
    for value, owner in zip(analysis.hashes.tolist(), analysis.owners.tolist(), strict=True):
        found[owner][value] += 1
    assert found == [Counter(map(token_hash, tokens(text))) for text in texts]
    assert analysis.owners.tolist() == sorted(analysis.owners.tolist())
    assert analysis.lengths.tolist() == [len(tokens(text)) for text in texts]


@settings(max_examples=200)
@given(st.text(CHARACTERS, max_size=60))
@example("don't-stop 1,000.5 getUserName’s O'Brien")
def test_a_long_text_has_the_same_words_in_the_same_order(text: str) -> None:
    assert words_of_long(text) == words(text)


@settings(max_examples=200)
@given(st.text("abst .'-_A1é", max_size=40))
@example("plain words  with two spaces")
@example(" plain")
@example("plain ")
def test_plain_words_are_read_as_all_others(text: str) -> None:
    assert words(text) == words_of_long(text)


@settings(max_examples=100)
@given(st.lists(TEXTS, max_size=3), st.sampled_from(["german", "french", None]))
def test_it_is_so_in_any_language(texts: list[str], language: str | None) -> None:
    analysis = analyse(texts, language)
    every = [token_hash(token) for text in texts for token in tokens(text, language)]
    assert sorted(analysis.hashes.tolist()) == sorted(every)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello, WORLD! 42nd", ["hello", "world", "42nd"]),
        ("Straße STRASSE", ["strasse", "strasse"]),
        ("e\u0301t\u00e9 ＦＵＬＬ", ["été", "full"]),
        ("猫", ["猫"]),
        ("我的猫", ["我的", "我", "的猫", "的", "猫"]),
        ("用Python写代码", ["用", "python", "写代", "写", "代码", "代", "码"]),
        ("ネコ。犬", ["ネコ", "ネ", "コ", "犬"]),
        ("한국 a", ["한국", "한", "국", "a"]),
        ("नमस्ते दुनिया", ["नमस्ते", "दुनिया"]),
        ("مرحبا بالعالم", ["مرحبا", "بالعالم"]),
        ("\U00020000\U00020001", ["\U00020000\U00020001", "\U00020000", "\U00020001"]),
        ("😀 \0 \ud800 …", ["😀"]),
        ("x", ["x"]),
        ("", []),
    ],
)
def test_words_are_what_a_reader_would_expect(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ann's dog’s", ["ann", "dog"]),
        ("I'm, we'll, they're, I've, he'd", ["i", "we", "they", "i", "he"]),
        ("I'd've", ["i"]),
        ("don't CAN’T won't've", ["dont", "cant", "wont"]),
        ("the dogs' 'quoted' rock 'n roll", ["the", "dogs", "quoted", "rock", "n", "roll"]),
        ("O'Brien o'clock", ["obrien", "o", "brien", "oclock", "o", "clock"]),
        ("Ann's-dog", ["ann", "dog"]),
        ("1990's 5'10", ["1990", "5", "10"]),
    ],
)
def test_an_apostrophe_leaves_no_junk(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("getUserName", ["getusername", "get", "user", "name"]),
        ("HTTPServer2", ["httpserver2", "http", "server", "2"]),
        ("user_id userId", ["userid", "user", "id", "userid", "user", "id"]),
        ("get-user.id", ["getuser.id", "get", "user", "id"]),
        ("foo.bar()", ["foo.bar", "foo", "bar"]),
        ("__init__ --flag a--b", ["init", "flag", "a", "b"]),
        ("APIs IDs SHOUTED Title", ["apis", "ids", "shouted", "title"]),
        ("a1b2 x86", ["a1b2", "x86"]),
        ("ann@example.com", ["ann@example.com", "ann", "example", "com"]),
        ("gpt-4 covid19", ["gpt-4", "gpt", "4", "covid19", "covid", "19"]),
        ("and/or std::vector", ["and", "or", "std", "vector"]),
        ("mem\u00adory", ["memory"]),
    ],
)
def test_a_name_is_found_whole_and_in_its_parts(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,000 $1,000,000", ["1000", "1000000"]),
        ("1,2,3 12,34", ["1", "2", "3", "12", "34"]),
        ("1234,567 1,0000 x1,000", ["1234", "567", "1", "0000", "x1", "000"]),
        ("3.14", ["3.14", "3", "14"]),
        ("1,000.50", ["1000.50", "1000", "50"]),
        ("2023-05-07", ["2023-05-07", "2023", "05", "07"]),
        ("10:30 1/2", ["10:30", "10", "30", "1/2", "1", "2"]),
        ("end. 5, 000", ["end", "5", "000"]),
    ],
)
def test_numbers_and_dates_are_found_as_written_and_in_their_parts(
    text: str, expected: list[str]
) -> None:
    assert words(text) == expected


def test_the_table_of_characters_says_what_each_one_is() -> None:
    table = kinds_table()
    codes = [*range(0x3400), *range(0x20000, 0x20010), 0x1F130, 0x3FFFF]
    assert [int(table[code]) for code in codes] == [kind_of(chr(code)) for code in codes]
    assert table.take([0x40000, 0x10FFFF], mode="clip").tolist() == [0, 0]


def test_order_and_repetition_tell_words_apart() -> None:
    words = ["ab", "ba", "aab", "aba", "baa", "a", "aa", "aaa", "b", "1", "01", "10", "100"]
    assert len({token_hash(word) for word in words}) == len(words)


def test_a_text_longer_than_the_kept_tables_is_analysed_whole() -> None:
    text = "many words " * 100_000 + "needle"
    analysis = analyse(["before", text])
    counts = Counter(analysis.hashes[analysis.owners == 1].tolist())
    assert counts == {
        token_hash(tokens("many")[0]): 100_000,
        token_hash(tokens("words")[0]): 100_000,
        token_hash(tokens("needle")[0]): 1,
    }


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        ("plain", "plain"),
        ({"title": "a", "body": {"text": "b", "n": 3, "more": ["c", 2.5]}}, "a\nb\n3\nc\n2.5"),
        ({"flag": True, "nothing": None, "raw": b"x"}, ""),
        ([["deep", ("er",)], "after"], "deep\ner\nafter"),
        (7, "7"),
        ({}, ""),
    ],
)
def test_a_payload_is_searched_by_its_values_in_order(payload: object, expected: str) -> None:
    assert text_of(payload) == expected


def test_a_payload_may_be_nested_deeper_than_python_recurses() -> None:
    payload: object = "bottom"
    for _ in range(100_000):
        payload = [payload]
    assert text_of(payload) == "bottom"


def test_a_picture_is_a_word_and_how_it_is_drawn_says_nothing() -> None:
    assert tokens("I ❤️ cake 🎂!") == tokens("I ❤ cake 🎂")
    assert "🎂" in tokens("cake 🎂!")
    assert "\ufe0f" not in tokens("⭐️")
