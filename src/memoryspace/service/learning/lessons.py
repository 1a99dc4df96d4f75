"""Ranking of lessons in search results: relevant ones only, helpful ones first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace as change

from ...record import is_number
from ...retrieval.lessons import LESSON_KINDS
from ...retrieval.relevance import RELEVANT
from ..values.memory import MemoryItem
from ..values.results import MemoryHit

USES, SUCCESSES = "uses", "successes"  # counters in a lesson's details

LOOKED_AT = 3  # candidates per requested lesson: one that helped may rise

_BESIDE = 0.1  # the share of the best lesson's threshold that suffices for the others
_MAX_LIFT = 3.0  # the most by which the odds of a lesson that always helped are multiplied


def is_lesson(memory: MemoryItem) -> bool:
    """Return whether a memory is a lesson, about tasks or about a tool."""
    return memory.kind in LESSON_KINDS


def handed_over(hits: Sequence[MemoryHit], least: float | None) -> list[MemoryHit]:
    """Return hits with lessons ranked by helpfulness, without irrelevant lessons.

    The best lesson must reach ``least`` by its relevance alone, however often it has helped
    elsewhere; the others may then score lower. Each hit of another kind must reach ``least``, if
    it is given.
    """
    lessons = [hit for hit in hits if is_lesson(hit.memory)]
    if not lessons:
        return [hit for hit in hits if least is None or hit.score >= least]
    bar = RELEVANT if least is None else least
    worth = {hit.memory.seq: helpfulness(hit) for hit in lessons}
    best = max(min(hit.score, worth[hit.memory.seq]) for hit in lessons)
    beside = _BESIDE * bar if best >= bar else float("inf")
    kept = [
        change(hit, score=worth.get(hit.memory.seq, hit.score))
        for hit in hits
        if worth.get(hit.memory.seq, hit.score) >= (beside if is_lesson(hit.memory) else least or 0)
    ]
    return sorted(kept, key=lambda hit: -hit.score)


def helpfulness(hit: MemoryHit) -> float:
    """Return how likely a lesson concerns the task and helps with it, judged by its uses.

    An unused lesson keeps its relevance. Each use that did not help lowers it, and each that did
    raises its odds.
    """
    uses, successes = uses_of(hit.memory)
    rate = (successes + 1) / (uses + 2)
    if rate < 0.5:
        return hit.score * 2 * rate
    lift = min(_MAX_LIFT, rate / (1 - rate))
    return hit.score * lift / (1 - hit.score + hit.score * lift)


def uses_of(memory: MemoryItem) -> tuple[int, int]:
    """Return how often a lesson was used, and how often it helped."""
    uses = _counted(memory, USES)
    return uses, min(uses, _counted(memory, SUCCESSES))


def _counted(memory: MemoryItem, name: str) -> int:
    value: Any = memory.details.get(name)
    return max(0, int(value)) if is_number(value) else 0
