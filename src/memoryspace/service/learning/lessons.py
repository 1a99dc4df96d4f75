"""Handing lessons over: those that concern the task, those first that have helped before."""

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

LOOKED_AT = 3  # times as many lessons as are asked for: one that helped may come from behind

_BESIDE = 0.1  # the share of what the best must reach that is enough for one beside it
_MOST_LIFT = 3.0  # how much the odds of a lesson that always helped grow at most


def is_lesson(memory: MemoryItem) -> bool:
    """Tell whether a memory is a lesson: of tasks, or of a tool."""
    return memory.kind in LESSON_KINDS


def handed_over(hits: Sequence[MemoryHit], least: float | None) -> list[MemoryHit]:
    """Return hits with lessons in the order of their use, and without those that do not concern.

    The best lesson must reach ``least`` by itself, however often it has helped elsewhere; then
    those beside it may be less sure. Other memories must reach it each, if it is given.
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
    """Return how likely a lesson concerns the task and helps with it, as far as its uses tell.

    One that nobody used counts as relevant as it is; each use without help takes from that, and
    each that helped adds to its odds.
    """
    uses, successes = uses_of(hit.memory)
    rate = (successes + 1) / (uses + 2)
    if rate < 0.5:
        return hit.score * 2 * rate
    lift = min(_MOST_LIFT, rate / (1 - rate))
    return hit.score * lift / (1 - hit.score + hit.score * lift)


def uses_of(memory: MemoryItem) -> tuple[int, int]:
    """Return how often a lesson was used, and how often that helped."""
    uses = _counted(memory, USES)
    return uses, min(uses, _counted(memory, SUCCESSES))


def _counted(memory: MemoryItem, name: str) -> int:
    value: Any = memory.details.get(name)
    return max(0, int(value)) if is_number(value) else 0
