"""Whether a lesson concerns a task: how likely, from 0 to 1, comparable between searches.

A lesson need not answer the words of a task as a message answers a question: a new task shares only
some of them. What counts is how much the words weigh that it does share, and how near it is in
meaning. A word weighs the more the fewer lessons have it, and twice as much where it says what the
lesson is for as where it stands in what was done. The curves were fitted to tasks whose lessons
were there, and to others whose lessons were not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from .catalogue import Catalogue
from .entries import Entry
from .ranking.pool import Pool
from .text.analysis import tokens

Floats = NDArray[np.float64]
Weights = Mapping[str, tuple[float, float, float]]

TASK_LESSON, TOOL_LESSON = "experience", "tool"
LESSON_KINDS = frozenset({TASK_LESSON, TOOL_LESSON})

# What speaks for a lesson: the logarithm of the weight of shared words, the cosine, and a constant.
_BY_WORDS = {TASK_LESSON: (4.1, 0.0, -7.9), TOOL_LESSON: (1.8, 0.0, -2.4)}
_BY_MEANING = {TASK_LESSON: (1.6, 12.9, -6.3), TOOL_LESSON: (2.2, 10.0, -4.4)}
_RAREST = 5.8  # what a word weighs that one lesson alone has
_ELSEWHERE = 0.5  # the share that counts of a word that does not say what a lesson is for
_IMAGINED = 10  # lessons without the word beside those that are there: of few, none is common
_IDEOGRAPH = 1 / 3  # the weight of a character that is a word of its own, against a word's
_FAR = 50.0  # beyond any doubt


def lesson_chances(
    pool: Pool, places: NDArray[np.int64], lessons: Sequence[Entry], catalogue: Catalogue
) -> Floats:
    """Return how likely lessons, the candidates at some places, concern the task asked about."""
    kinds = [each.kind for each in lessons]
    weights = {kind: _weights(pool, catalogue.rows_of("kind", kind)) for kind in set(kinds)}
    has = pool.gains_at(0)[places] > 0
    totals = (has * _shares(pool, lessons) * np.array([weights[kind] for kind in kinds])).sum(1)
    shared: Floats = np.log1p(totals)
    cosines = pool.cosines[places]  # 0 where nothing could be embedded: then words alone tell
    by_words = np.where(shared > 0, _sums(_BY_WORDS, kinds, shared, cosines), -_FAR)
    sums = np.where(cosines == 0, by_words, _sums(_BY_MEANING, kinds, shared, cosines))
    chances: Floats = 1 / (1 + np.exp(-np.clip(sums, -_FAR, _FAR)))
    return chances


def _sums(weights: Weights, kinds: Sequence[str], shared: Floats, cosines: Floats) -> Floats:
    by_words, by_meaning, constant = np.array([weights[kind] for kind in kinds]).T
    sums: Floats = by_words * shared + by_meaning * cosines + constant
    return sums


def _weights(pool: Pool, rows: NDArray[np.int64]) -> Floats:
    """Return what each word of the task weighs, by how many of the lessons at some rows have it."""
    there = np.isin(pool.rows, rows)
    counts = (pool.gains_at(0)[there] > 0).sum(axis=0)
    among = len(rows) + _IMAGINED
    rarity = np.log1p((among - counts + 0.5) / (counts + 0.5)) / _rarity_of_one(among)
    sizes = [_IDEOGRAPH if _is_ideographic(word) else 1.0 for word in pool.words]
    weights: Floats = _RAREST * rarity * np.array(sizes)
    return weights


def _rarity_of_one(among: int) -> float:
    return math.log1p((among - 0.5) / 1.5)


def _shares(pool: Pool, lessons: Sequence[Entry]) -> Floats:
    """Return for each lesson and word how much of the word's weight counts."""
    asked = [frozenset(tokens(word)) for word in pool.words]
    heads = [_head_words(_head_of(each)) for each in lessons]
    said = [[1.0 if words & head else _ELSEWHERE for words in asked] for head in heads]
    return np.array(said).reshape(len(lessons), len(asked))


def _head_of(lesson: Entry) -> str:
    """Return what a lesson is for: the statements of its tasks, or the name of a tool."""
    title = "" if lesson.title is None else lesson.title
    if lesson.kind != TASK_LESSON:
        return title
    first = lesson.text.partition("\n")[0]
    return f"{title}\n{first.replace('：', ':').partition(':')[2]}"


@lru_cache(maxsize=1024)
def _head_words(head: str) -> frozenset[str]:
    return frozenset(tokens(head))


def _is_ideographic(word: str) -> bool:
    return any("\u4e00" <= letter <= "\u9fff" for letter in word)
