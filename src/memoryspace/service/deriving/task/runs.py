"""Runs: the stored form of attempts at a task, and which runs belong to one lesson."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec import Struct

from ....retrieval.text.analysis import tokens
from ....retrieval.text.stopwords import STOP_WORDS
from .trajectory import ToolStep

KEPT_RUNS = 12  # of one lesson, the newest
KEPT_CALLS = 24  # of one run

_DIGIT = re.compile(r"\d")

# Shares of common words, from 0 to 1:
_SAME_TASK = 0.62  # two statements of the same task
_SAME_WAY = 0.42  # the calls of two runs with the same approach,
_NOT_FOREIGN = 0.08  # whose tasks share at least this much
_SAME_CALL = 0.75  # two calls of one tool that are the same
_SAME_ERROR = 0.5  # their answers, if they fail the same way


class TaskRun(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One attempt at a task: its score, time, calls and conclusion."""

    id: str
    session: str
    task: str
    score: float
    is_success: bool
    at: float
    steps: tuple[ToolStep, ...] = ()
    conclusion: str = ""
    correction: str = ""
    sources: tuple[str, ...] = ()

    @property
    def tools(self) -> list[str]:
        """The tools used, in the order of their first use."""
        return list(dict.fromkeys(step.tool for step in self.steps))


def kept_steps(steps: Sequence[ToolStep]) -> tuple[ToolStep, ...]:
    """Return the steps to store of a run: of many, the first and the last."""
    if len(steps) <= KEPT_CALLS:
        return tuple(steps)
    return (*steps[: KEPT_CALLS // 2], *steps[-KEPT_CALLS // 2 :])


def runs_in(details: Mapping[str, Any]) -> list[TaskRun]:
    """Return the runs of a lesson, oldest first; unreadable ones are skipped."""
    kept = details.get("runs")
    found = []
    for each in kept.values() if isinstance(kept, Mapping) else ():
        try:
            found.append(msgspec.convert(each, TaskRun))
        except msgspec.ValidationError:
            continue
    return sorted(found, key=lambda run: (run.at, run.id))


class RunComparison:
    """Similarity of runs among a set of known runs.

    Words are weighted by how rare they are among these runs.
    """

    def __init__(self, runs: Iterable[TaskRun]) -> None:
        self._ways: dict[str, frozenset[int]] = {}  # by the ids of runs
        self._total = 1
        self._seen = Counter[int]()
        for run in runs:
            self._total += 1
            self._seen.update(words_in(run.task) | self._way(run))

    def share(self, one: frozenset[int], other: frozenset[int]) -> float:
        """Return the weighted Dice similarity of two sets of words."""
        shared = one & other
        if not shared:
            return 0.0
        return 2 * self._weight(shared) / (self._weight(one) + self._weight(other))

    def is_same_task(self, one: TaskRun, other: TaskRun) -> bool:
        """Return whether two runs are attempts at the same task."""
        if one.task == other.task:
            return True
        return self.share(words_in(one.task), words_in(other.task)) >= _SAME_TASK

    def nearness(self, one: TaskRun, other: TaskRun) -> float:
        """Return the similarity of two runs; 0 unless they belong to one lesson."""
        if one.task == other.task:
            return 1.0
        task = self.share(words_in(one.task), words_in(other.task))
        if task < _NOT_FOREIGN and not _fail_alike(one, other):
            return 0.0
        way = self.share(self._way(one), self._way(other))
        if task >= _SAME_TASK or (way >= _SAME_WAY and task >= _NOT_FOREIGN):
            return max(task, way)
        return way if _fail_alike(one, other) else 0.0

    def _way(self, run: TaskRun) -> frozenset[int]:
        """Return the words of a run's calls."""
        way = self._ways.get(run.id)
        if way is None:
            way = self._ways[run.id] = words_in("\n".join(step.call for step in run.steps))
        return way

    def _weight(self, words: Iterable[int]) -> float:
        return sum(math.log(1 + self._total / (1 + self._seen[word])) for word in words)


def words_in(text: str) -> frozenset[int]:
    """Return the content words of a text, without stop words and numbers."""
    return _read(text)[0]


def all_words_in(text: str) -> frozenset[int]:
    """Return all words and numbers of a text."""
    return _read(text)[1]


def is_same_call(one: ToolStep, other: ToolStep) -> bool:
    """Return whether two calls are the same, apart from varying parts."""
    if one.tool != other.tool:
        return False
    return one.arguments == other.arguments or overlap(one.call, other.call) >= _SAME_CALL


def is_same_failure(one: ToolStep, other: ToolStep) -> bool:
    """Return whether two calls of a tool failed in the same way."""
    return (
        one.is_failure
        and other.is_failure
        and one.tool == other.tool
        and overlap(one.output or "", other.output or "") >= _SAME_ERROR
    )


def overlap(one: str, other: str) -> float:
    """Return the Dice similarity of two texts by their words and numbers."""
    first, second = all_words_in(one), all_words_in(other)
    total = len(first) + len(second)
    return 2 * len(first & second) / total if total else float(one == other)


def _fail_alike(one: TaskRun, other: TaskRun) -> bool:
    """Return whether the same call failed in the same way in both runs."""
    failed = [step for step in one.steps if step.is_failure]
    others = [step for step in other.steps if step.is_failure]
    return any(
        is_same_failure(step, each) and is_same_call(step, each)
        for step in failed
        for each in others
    )


# A cache by digest of the text. It holds hashes of words, so no text stays in memory.
_read_texts: dict[bytes, tuple[frozenset[int], frozenset[int]]] = {}
_MOST_READ_TEXTS = 8192


def _read(text: str) -> tuple[frozenset[int], frozenset[int]]:
    """Return the content words of a text and all its words, cached."""
    key = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    found = _read_texts.get(key)
    if found is None:
        words = frozenset(tokens(text))
        telling = (word for word in words if word not in STOP_WORDS and not _DIGIT.search(word))
        found = frozenset(map(hash, telling)), frozenset(map(hash, words))
        if len(_read_texts) >= _MOST_READ_TEXTS:
            _read_texts.clear()
        _read_texts[key] = found
    return found
