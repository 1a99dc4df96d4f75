"""How good an answer is, beside gold ones: the same (``exact_match``), or how much of it (``f1``).

Texts are normalised as SQuAD does: lower case, without punctuation, without "a", "an" and "the".
Chinese, Japanese and Korean have no spaces between words, so their characters count one by one.
Of several gold answers the one counts that fits best.
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
    """1 if the answer is a gold one once both are normalised, else 0."""
    said = pieces(answer)
    return float(any(said == pieces(each) for each in _checked(gold)))


def f1(answer: str, gold: Collection[str]) -> float:
    """The harmonic mean of precision and recall of words, for the gold answer that fits best."""
    said = Counter(pieces(answer))
    return max(_f1(said, Counter(pieces(each))) for each in _checked(gold))


def pieces(text: str) -> list[str]:
    """Return the words of a text, normalised, or its characters where there are no words."""
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
