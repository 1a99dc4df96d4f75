"""Relevance of lessons: the probability, from 0 to 1, that a lesson concerns a task.

It compares between searches. A new task shares only some words with the lesson of an old one, so
the evidence is the weight of the shared words, and the cosine. A word weighs the more, the fewer
lessons have it, and counts double where it says what the lesson is for rather than what was done.
The curves were fitted to tasks with and without a fitting lesson.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from .catalogue import Catalogue
from .entries import Entry
from .ranking.pool import CandidatePool
from .text.analysis import tokens

Floats = NDArray[np.float64]
Weights = Mapping[str, tuple[float, float, float]]

TASK_LESSON, TOOL_LESSON = "experience", "tool"
LESSON_KINDS = frozenset({TASK_LESSON, TOOL_LESSON})

# Coefficients: of the logarithm of the weight of shared words, of the cosine, and the constant.
_BY_WORDS = {TASK_LESSON: (4.1, 0.0, -7.9), TOOL_LESSON: (1.8, 0.0, -2.4)}
_BY_MEANING = {TASK_LESSON: (1.6, 12.9, -6.3), TOOL_LESSON: (2.2, 10.0, -4.4)}
_RAREST = 5.8  # weight of a word that occurs in one lesson
_ELSEWHERE = 0.5  # share of the weight for a word outside of what the lesson is for
_IMAGINED = 10  # extra lessons without the word, so that no word is common among a few lessons
_IDEOGRAPH = 1 / 3  # weight of a single CJK character, relative to a word
_FAR = 50.0  # a log-odds of practical certainty


def lesson_chances(
    pool: CandidatePool, places: NDArray[np.int64], lessons: Sequence[Entry], catalogue: Catalogue
) -> Floats:
    """Return the probability that lessons, the candidates at some places, concern the task."""
    kinds = [each.kind for each in lessons]
    weights = {kind: _weights(pool, catalogue.rows_of("kind", kind)) for kind in set(kinds)}
    has = pool.gains_at(0)[places] > 0
    totals = (has * _shares(pool, lessons) * np.array([weights[kind] for kind in kinds])).sum(1)
    shared: Floats = np.log1p(totals)
    cosines = pool.cosines[places]  # 0 without a vector: then the words decide alone
    by_words = np.where(shared > 0, _sums(_BY_WORDS, kinds, shared, cosines), -_FAR)
    sums = np.where(cosines == 0, by_words, _sums(_BY_MEANING, kinds, shared, cosines))
    chances: Floats = 1 / (1 + np.exp(-np.clip(sums, -_FAR, _FAR)))
    return chances


def _sums(weights: Weights, kinds: Sequence[str], shared: Floats, cosines: Floats) -> Floats:
    by_words, by_meaning, constant = np.array([weights[kind] for kind in kinds]).T
    sums: Floats = by_words * shared + by_meaning * cosines + constant
    return sums


def _weights(pool: CandidatePool, rows: NDArray[np.int64]) -> Floats:
    """Return the weight of each word of the task, by how many lessons at some rows have it."""
    there = np.isin(pool.rows, rows)
    counts = (pool.gains_at(0)[there] > 0).sum(axis=0)
    among = len(rows) + _IMAGINED
    rarity = np.log1p((among - counts + 0.5) / (counts + 0.5)) / _rarity_of_one(among)
    sizes = [_IDEOGRAPH if _is_ideographic(word) else 1.0 for word in pool.words]
    weights: Floats = _RAREST * rarity * np.array(sizes)
    return weights


def _rarity_of_one(among: int) -> float:
    return math.log1p((among - 0.5) / 1.5)


def _shares(pool: CandidatePool, lessons: Sequence[Entry]) -> Floats:
    """Return the share of the word's weight that counts, for each lesson and word."""
    asked = [frozenset(tokens(word)) for word in pool.words]
    heads = [_head_words(_head_of(each)) for each in lessons]
    said = [[1.0 if words & head else _ELSEWHERE for words in asked] for head in heads]
    return np.array(said).reshape(len(lessons), len(asked))


def _head_of(lesson: Entry) -> str:
    """Return the part that says what a lesson is for: its tasks' statements, or a tool's name."""
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
