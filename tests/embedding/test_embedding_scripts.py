"""Which script a text is in, and which texts a model of English must not rank."""

from __future__ import annotations

import pytest

from memoryspace.embedding import can_rank, dominant_script, script_shares, scripts_of

LATIN = frozenset({"latin"})


@pytest.mark.parametrize(
    ("text", "scripts"),
    [
        ("Hello, world! 123", {"latin"}),
        ("Grüße aus Łódź", {"latin"}),
        ("我喜欢 apple", {"han", "latin"}),
        ("これはテスト", {"kana"}),
        ("東京タワー", {"han", "kana"}),
        ("안녕하세요", {"hangul"}),
        ("Привет", {"cyrillic"}),
        ("مرحبا", {"arabic"}),
        ("שלום", {"hebrew"}),
        ("नमस्ते", {"devanagari"}),
        ("สวัสดี", {"thai"}),
        ("Γειά", {"greek"}),
        ("ᏣᎳᎩ", {"other"}),
        ("12 + 34 = 46 😀", set()),
        ("", set()),
    ],
)
def test_scripts_are_told_apart(text: str, scripts: set[str]) -> None:
    assert scripts_of(text) == scripts


def test_the_dominant_script_has_most_letters() -> None:
    assert dominant_script("用 Python 写的一个很小的程序") == "han"
    assert dominant_script("Beijing (北京) is the capital") == "latin"
    assert dominant_script("2024") is None
    assert script_shares("ab中国") == {"latin": 0.5, "han": 0.5}


@pytest.mark.parametrize(
    ("text", "can"),
    [
        ("What did I eat yesterday?", True),
        ("Beijing (北京) is the capital of China", True),
        ("我昨天吃了什么？", False),
        ("我用 iPhone 拍照", False),
        ("Привет, мир", False),
        ("12345", True),
        ("?!", False),
        ("", False),
    ],
)
def test_an_english_model_ranks_only_what_it_can_read(text: str, can: bool) -> None:
    assert can_rank(LATIN, text) is can
    assert can_rank(None, text) is True
