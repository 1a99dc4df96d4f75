"""Scores of an answer against gold answers: ``exact_match`` and word-level ``f1``.

Texts are normalised as in SQuAD: lower case, no punctuation, no "a", "an" or "the". Chinese,
Japanese and Korean have no spaces between words, so each character counts as a word. With several
gold answers, the best match counts.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection

from ..errors import InvalidInput

_ARTICLES = frozenset({"a", "an", "the"})
_PIECE = re.compile(
    "[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]"
    "|[^\\s\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff]+"
)


def exact_match(answer: str, gold: Collection[str]) -> float:
    """Return 1 if the answer equals a gold answer after normalisation, else 0."""
    said = pieces(answer)
    return float(any(said == pieces(each) for each in _checked(gold)))


def f1(answer: str, gold: Collection[str]) -> float:
    """Return the harmonic mean of word precision and recall against the closest gold answer."""
    said = Counter(pieces(answer))
    return max(_f1(said, Counter(pieces(each))) for each in _checked(gold))


def pieces(text: str) -> list[str]:
    """Return the normalised words of a text, or its characters in scripts without spaces."""
    plain = "".join(
        sign
        for sign in unicodedata.normalize("NFKC", text).lower()
        if unicodedata.category(sign)[0] not in "PS"
    )
    return [piece for piece in _PIECE.findall(plain) if piece not in _ARTICLES]


def _f1(said: Counter[str], wanted: Counter[str]) -> float:
    if not said or not wanted:
        return float(said == wanted)
    common = sum((said & wanted).values())
    if not common:
        return 0.0
    precision, recall = common / said.total(), common / wanted.total()
    return 2 * precision * recall / (precision + recall)


def _checked(gold: Collection[str]) -> Collection[str]:
    if isinstance(gold, str) or not gold:
        raise InvalidInput("there must be a gold answer or several, in a list")
    return gold
