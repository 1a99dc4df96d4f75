"""Lessons as memories: their stored form, and rebuilding them after some runs were deleted."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace as change

from ....record import Origin
from ...values.kinds import EXPERIENCE
from ...values.memory import Draft, MemoryItem
from .rules import COMPARISON, FAILURE, SUCCESS, Lesson, lesson_of
from .runs import KEPT_RUNS, RunComparison, TaskRun, runs_in

AUTHOR = "task memory"
IMPORTANCE = {SUCCESS: 0.6, FAILURE: 0.6, COMPARISON: 0.7}

_BY_MODEL = "by_model"  # set in the details of a lesson worded by a model


def draft_of(lesson: Lesson, runs: Sequence[TaskRun], *, by_model: bool = False) -> Draft:
    """Return the draft of a lesson, with its newest runs."""
    runs = runs[-KEPT_RUNS:]
    details = {
        **lesson_details(lesson),
        "score": runs[-1].score,
        "task": runs[-1].task,
        "uses": 0,
        "successes": 0,
        "confirmations": 0,
        "runs": {run.id: msgspec.to_builtins(run) for run in runs},
    }
    if by_model:
        details[_BY_MODEL] = True
    sources = dict.fromkeys(source for run in runs for source in run.sources)
    return Draft(
        value=lesson.text,
        text=lesson.text,
        kind=EXPERIENCE,
        title=runs[-1].task[:120] if runs[-1].task else None,
        details=details,
        importance=IMPORTANCE[lesson.type],
        origin=Origin(AUTHOR, tuple(sources)),
    )


def lesson_details(lesson: Lesson) -> dict[str, Any]:
    """Return the details that describe a lesson."""
    return {
        "type": lesson.type,
        "when_to_use": lesson.when_to_use,
        "lesson": lesson.lesson,
        "tools": list(lesson.tools),
    }


def without_runs(memory: MemoryItem, gone: Collection[str]) -> MemoryItem | None:
    """Return a lesson rebuilt from the runs that do not depend on deleted memories.

    Return ``None`` if the memory is not a lesson, if no run is left, or if a model worded it: then
    it cannot be told which parts came from which run.
    """
    if memory.kind != EXPERIENCE or memory.details.get(_BY_MODEL):
        return None
    lost = frozenset(gone)
    runs = [run for run in runs_in(memory.details) if lost.isdisjoint(run.sources)]
    lesson = lesson_of(runs, RunComparison(runs)) if runs else None
    if lesson is None:
        return None
    draft = draft_of(lesson, runs)
    counted = ("uses", "successes", "confirmations", "failures")
    kept = {name: memory.details[name] for name in counted if name in memory.details}
    return change(
        memory,
        value=draft.value,
        text=draft.text,
        title=draft.title,
        details={**memory.details, **draft.details, **kept},
        importance=IMPORTANCE[lesson.type],
        origin=draft.origin,
    )


def session_of_runs(memory: MemoryItem) -> str | None:
    """Return the session of a lesson's newest run; ``None`` if it is not a lesson by rules."""
    runs = runs_in(memory.details) if memory.kind == EXPERIENCE else []
    return runs[-1].session if runs and not memory.details.get(_BY_MODEL) else None
