"""Similarity of short texts and values by their words: 1 for equal ones, 0 for none in common."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

from ...retrieval.text.analysis import tokens
from ...retrieval.text.stopwords import STOP_WORDS
from .language import word_set

_WEIGHT = 3  # of a word; a stop word weighs 1
_DENIES = word_set("""
    no not nor never cant couldnt didnt doesnt dont hadnt hasnt havent isnt arent
    wasnt werent wont wouldnt shouldnt 不 没 别 无 非
""")


def similarity(one: str, other: str) -> float:
    """Return the weighted Dice similarity of two texts.

    Stop words weigh little, except negations: "I do not like it" must not match "I like it".
    """
    first, second = _weighed(one), _weighed(other)
    total = first.total() + second.total()
    return 2 * (first & second).total() / total if total else float(one.strip() == other.strip())


@lru_cache(maxsize=4096)  # one value is compared with many
def value_words(value: str) -> frozenset[str]:
    """Return the stemmed content words of a value; all its words if it has only stop words."""
    found = frozenset(tokens(value))
    telling = frozenset(word for word in found if word not in STOP_WORDS)
    return telling if telling else found


def overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the share of words two values have in common, from 0 to 1 (Dice)."""
    total = len(one) + len(other)
    return 2 * len(one & other) / total if total else 1.0


def _weighed(text: str) -> Counter[str]:
    counts = Counter(tokens(text))
    for word in counts:
        if word not in STOP_WORDS or word in _DENIES:
            counts[word] *= _WEIGHT
    return counts
