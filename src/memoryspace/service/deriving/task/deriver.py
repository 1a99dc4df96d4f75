"""``TaskDeriver``: lessons from scored trajectories.

A job is one trajectory. Its details hold the ``score`` and optionally the ``task`` and the
``success_threshold``. A run joins the lesson with the most similar runs, and that lesson combines
them: what the good runs did and what the bad ones did instead. If a run shows that an earlier
approach no longer works, its lesson supersedes the old one. Without a model, lessons quote what
happened; with a model, they are generalised and checked before they are stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from ....errors import ModelFailed, ModelUnavailable
from ....model import ChatModel, Spending
from ....record import is_number
from ...values.kinds import EXPERIENCE
from ...values.memory import MemoryItem
from ..contract import Add, Adjust, BadDecision, Decision, Job, Known, Supersede
from ..similarity import similarity
from .lessons import AUTHOR, IMPORTANCE, draft_of, lesson_details
from .model import Teacher
from .rules import Lesson, lesson_of, upheld_runs
from .runs import KEPT_RUNS, RunComparison, TaskRun, kept_steps, runs_in
from .trajectory import Trajectory, read_trajectory

DEFAULT_SCORE = 1.0  # of a trajectory without one
DEFAULT_THRESHOLD = 1.0  # the score from which a run is a success

_SAME_LESSON = 0.85  # similarity from which two lessons of one type are the same
_NEWEST = 200  # newest lessons that a run is compared with,
_LIKEST = 20  # and further ones found by search


class _Attempt(Struct, frozen=True):
    """A trajectory and the run to store for it."""

    trajectory: Trajectory
    run: TaskRun
    is_doubtful: bool  # some of its messages are in quarantine


class TaskDeriver:
    """Derives lessons (kind ``experience``) from trajectories, by rules or with a model.

    Args:
        model: A chat model that words the lessons; rules do so if it is ``None``.
        spending: Where to account for model calls.
        min_score: The score that a lesson must reach when the model checks it.

    Example::

        service = InMemoryMemoryService(derivers=[TaskDeriver(model, min_score=0.7)])
    """

    name = AUTHOR
    kinds = (EXPERIENCE,)

    def __init__(
        self,
        model: ChatModel | None = None,
        *,
        spending: Spending | None = None,
        min_score: float = 0.5,
    ) -> None:
        self._teacher = None if model is None else Teacher(model, spending, min_score)

    @property
    def is_quick(self) -> bool:
        """Whether it works by rules alone, without a model."""
        return self._teacher is None

    def concerns(self, memories: Sequence[MemoryItem], details: Mapping[str, Any]) -> bool:
        """Return whether the messages are a trajectory, that is, have a score."""
        return "score" in details

    async def derive(self, job: Job, known: Known) -> list[Decision]:
        """Return the decisions that add one trajectory to the known lessons."""
        attempt = _attempt(job)
        lessons = await _candidates(attempt.run, known)
        if self._teacher is None:
            return _by_rules(attempt, lessons)
        try:
            return await _by_model(self._teacher, attempt, lessons, known)
        except ModelUnavailable:
            raise  # temporary: the job is retried
        except ModelFailed:
            return _by_rules(attempt, lessons)


def _attempt(job: Job) -> _Attempt:
    score = _number("score", job.details, DEFAULT_SCORE)
    threshold = _number("success_threshold", job.details, DEFAULT_THRESHOLD)
    task = job.details.get("task")
    if task is not None and not isinstance(task, str):
        raise BadDecision(f"a trajectory's task must be a str, got {type(task).__name__}")
    trajectory = read_trajectory(job.memories, task)
    sources = tuple(memory.id for memory in job.memories)
    run = TaskRun(
        id=f"{job.session_id}/{sources[0]}",
        session=job.session_id,
        task=trajectory.statement,
        score=score,
        is_success=score >= threshold,
        at=max(memory.created_at for memory in job.memories),
        steps=kept_steps(trajectory.steps),
        conclusion=trajectory.conclusion,
        correction=trajectory.correction,
        sources=sources,
    )
    return _Attempt(trajectory, run, any(memory.is_quarantined for memory in job.memories))


async def _candidates(run: TaskRun, known: Known) -> list[MemoryItem]:
    """Return the lessons a run may belong to: the newest, and those most similar to its task."""
    newest = await known.of_kind(EXPERIENCE, limit=_NEWEST)
    found = {each.id: each for each in newest}
    if len(newest) == _NEWEST:
        for memory, _ in await known.similar(run.task, kinds=(EXPERIENCE,), top_k=_LIKEST):
            found.setdefault(memory.id, memory)
    return list(found.values())


# -- by rules --------------------------------------------------------------------------------------


class _LessonRuns(Struct, frozen=True):
    """A stored lesson and its runs."""

    memory: MemoryItem
    runs: list[TaskRun]


def _by_rules(attempt: _Attempt, lessons: Sequence[MemoryItem]) -> list[Decision]:
    """Add a run to its lesson, or start a new lesson.

    Quarantined text must not reach trusted memories, so a doubtful run gets its own lesson.
    """
    run = attempt.run
    every = [_LessonRuns(memory, runs_in(memory.details)) for memory in lessons]
    comparison = RunComparison([run, *(each for candidate in every for each in candidate.runs)])
    candidate = None if attempt.is_doubtful else _nearest(run, every, comparison)
    if candidate is not None:
        return _joined(run, candidate, comparison)
    lesson = lesson_of([run], comparison)
    return [] if lesson is None else [Add(draft_of(lesson, [run]))]


def _nearest(
    run: TaskRun, every: Sequence[_LessonRuns], comparison: RunComparison
) -> _LessonRuns | None:
    best, nearest = None, 0.0
    for candidate in every:
        near = max((comparison.nearness(run, each) for each in candidate.runs), default=0.0)
        if near > nearest:
            best, nearest = candidate, near
    return best


def _joined(run: TaskRun, candidate: _LessonRuns, comparison: RunComparison) -> list[Decision]:
    """Return the decisions that add a run to a lesson."""
    if any(each.id == run.id for each in candidate.runs):
        return []  # counted already
    runs = [*candidate.runs, run]
    lesson = lesson_of(runs, comparison)
    if lesson is None:
        return []
    upheld = upheld_runs(runs, comparison)
    if len(upheld) < len(runs):
        return [Supersede(candidate.memory.id, draft_of(lesson, upheld), run.at)]
    return [_confirmed(candidate, lesson, run)]


def _confirmed(candidate: _LessonRuns, lesson: Lesson, run: TaskRun) -> Adjust:
    runs: dict[str, Any] = dict.fromkeys(each.id for each in candidate.runs[: 1 - KEPT_RUNS])
    runs[run.id] = msgspec.to_builtins(run)
    counter = "confirmations" if run.is_success else "failures"
    return Adjust(
        candidate.memory.id,
        details={**lesson_details(lesson), "runs": runs},
        counters={counter: 1},
        text=lesson.text,
        importance=IMPORTANCE[lesson.type],
        derived_from=run.sources,
    )


# -- by a model ------------------------------------------------------------------------------------


async def _by_model(
    teacher: Teacher, attempt: _Attempt, lessons: Sequence[MemoryItem], known: Known
) -> list[Decision]:
    earlier = _same_task(attempt.run, lessons)
    outcome = {"score": attempt.run.score, "is_success": attempt.run.is_success}
    taught = await teacher.lessons(attempt.trajectory, outcome, [_told(each) for each in earlier])
    runs = [run for each in earlier for run in runs_in(each.details)]
    return [
        await _kept(lesson, [*runs, attempt.run], attempt.is_doubtful, known)
        for lesson in _distinct(taught)
    ]


def _same_task(run: TaskRun, lessons: Sequence[MemoryItem]) -> list[MemoryItem]:
    """Return the lessons from earlier runs of the same task, oldest first."""
    runs = {each.id: runs_in(each.details) for each in lessons}
    comparison = RunComparison([run, *(each for kept in runs.values() for each in kept)])
    same = [
        memory
        for memory in lessons
        if any(comparison.is_same_task(run, each) for each in runs[memory.id])
    ]
    return sorted(same, key=lambda memory: memory.seq)


def _distinct(lessons: Sequence[Lesson]) -> list[Lesson]:
    """Return lessons without near duplicates of the same type."""
    kept: list[Lesson] = []
    for lesson in lessons:
        same = (other for other in kept if other.type == lesson.type)
        if all(similarity(other.text, lesson.text) < _SAME_LESSON for other in same):
            kept.append(lesson)
    return kept


async def _kept(
    lesson: Lesson, runs: Sequence[TaskRun], is_doubtful: bool, known: Known
) -> Decision:
    """Return the decision for a lesson: confirm a known one, otherwise add it."""
    if not is_doubtful:
        for memory, alike in await known.similar(lesson.text, kinds=(EXPERIENCE,), top_k=5):
            if alike >= _SAME_LESSON and memory.details.get("type") == lesson.type:
                return Adjust(memory.id, counters={"confirmations": 1})
    return Add(draft_of(lesson, runs, by_model=True))


def _told(memory: MemoryItem) -> dict[str, Any]:
    told = ("type", "lesson", "score")
    return {name: memory.details[name] for name in told if name in memory.details}


def _number(name: str, details: Mapping[str, Any], default: float) -> float:
    value = details.get(name)
    if value is None:
        return default
    if not is_number(value):
        raise BadDecision(f"a trajectory's {name} must be a number, got {value!r}")
    return float(value)
