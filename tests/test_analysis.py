"""What a search sees of a text, read slowly and read in batches, is the same."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memoryspace.retrieval.analysis import analyse, text_of, token_hash, tokens

# Any code point, lone surrogates and NUL included, with scripts that matter more often.
CHARACTERS = st.one_of(
    st.characters(codec=None, exclude_categories=()),
    st.sampled_from(
        "aZ09_ -.\n\0ßſİıΣςéＡ２ー々〇猫狗ねこネコ한국ｶﾞ\u0301\u3099😀\ud800\U00020000\U000e0100"
    ),
)
TEXTS = st.text(CHARACTERS, max_size=30)


@settings(max_examples=300)
@given(st.lists(TEXTS, max_size=6))
@example(["", "", ""])
@example(["猫", "狗"])  # neighbours in the batch are no neighbours in a text
@example(["end", "begin"])
def test_a_batch_is_analysed_as_its_texts_are_one_by_one(texts: list[str]) -> None:
    analysis = analyse(texts)
    found: list[Counter[int]] = [Counter() for _ in texts]
    for value, owner in zip(analysis.hashes.tolist(), analysis.owners.tolist(), strict=True):
        found[owner][value] += 1
    assert found == [Counter(map(token_hash, tokens(text))) for text in texts]
    assert analysis.lengths.tolist() == [len(tokens(text)) for text in texts]


@given(TEXTS)
def test_tokens_of_tokens_are_the_same_words(text: str) -> None:
    words = [token for token in tokens(text) if len(tokens(token)) == 1]
    assert all(len(tokens(f" {word}\n")) == 1 for word in words)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello, WORLD! 42nd", ["hello", "world", "42nd"]),
        ("user_id = get-user.id", ["user", "id", "get", "user", "id"]),
        ("Straße STRASSE", ["strasse", "strasse"]),
        ("e\u0301t\u00e9 ＦＵＬＬ", ["été", "full"]),
        ("猫", ["猫"]),
        ("我的猫", ["我", "的", "猫", "我的", "的猫"]),
        ("用Python写代码", ["用", "python", "写", "代", "码", "写代", "代码"]),
        ("ネコ。犬", ["ネ", "コ", "ネコ", "犬"]),
        ("한국 a", ["한", "국", "한국", "a"]),
        ("नमस्ते दुनिया", ["नमस्ते", "दुनिया"]),
        ("\U00020000\U00020001", ["\U00020000", "\U00020001", "\U00020000\U00020001"]),
        ("😀 \0 \ud800 …", []),
        ("", []),
    ],
)
def test_words_are_what_a_reader_would_expect(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


def test_order_and_repetition_tell_words_apart() -> None:
    words = ["ab", "ba", "aab", "aba", "baa", "a", "aa", "aaa", "b", "1", "01", "10", "100"]
    assert len({token_hash(word) for word in words}) == len(words)


def test_a_text_longer_than_the_kept_tables_is_analysed_whole() -> None:
    text = "many words " * 100_000 + "needle"
    analysis = analyse(["before", text])
    counts = Counter(analysis.hashes[analysis.owners == 1].tolist())
    assert counts == {
        token_hash("many"): 100_000,
        token_hash("words"): 100_000,
        token_hash("needle"): 1,
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
