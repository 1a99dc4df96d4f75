"""Similarity of short texts by their words alone: 1 for equal texts, 0 for none in common."""

from __future__ import annotations

from collections import Counter

from ...retrieval.text.analysis import tokens
from ...retrieval.text.stopwords import STOP_WORDS

_WEIGHT = 3  # of a word; a stop word weighs 1
_DENIES = frozenset(
    [
        "no",
        "not",
        "nor",
        "never",
        "cant",
        "couldnt",
        "didnt",
        "doesnt",
        "dont",
        "hadnt",
        "hasnt",
        "havent",
        "isnt",
        "arent",
        "wasnt",
        "werent",
        "wont",
        "wouldnt",
        "shouldnt",
        "不",
        "没",
        "别",
        "无",
        "非",
    ]
)


def likeness(one: str, other: str) -> float:
    """Return the weighted Dice similarity of two texts.

    Stop words weigh little, except negations: "I do not like it" must not match "I like it".
    """
    first, second = _weighed(one), _weighed(other)
    total = first.total() + second.total()
    return 2 * (first & second).total() / total if total else float(one.strip() == other.strip())


def _weighed(text: str) -> Counter[str]:
    counts = Counter(tokens(text))
    for word in counts:
        if word not in STOP_WORDS or word in _DENIES:
            counts[word] *= _WEIGHT
    return counts
