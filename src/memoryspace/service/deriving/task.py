"""``TaskDeriver``: from scored trajectories to experiences that help with the next task.

A job is one trajectory; its details give the ``score``, perhaps the ``task`` it belongs to and the
``success_threshold``. What was learnt before is confirmed, not repeated; two attempts at the same
task with different scores are compared. Without a model the lessons are in the words of what
happened; with one they are generalised, and checked in one batch before they are kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from ...errors import ModelFailed, ModelUnavailable
from ...model import ChatModel, Spending
from ...record import Origin, is_number
from ..likeness import likeness
from ..memory import Draft, MemoryItem
from .contract import Add, Adjust, BadDecision, Decision, Job, Known
from .task_model import Teacher
from .task_rules import COMPARISON, FAILURE, SUCCESS, Lesson, comparison_of, lesson_of
from .task_trajectory import Trajectory, read_trajectory

EXPERIENCE = "experience"

DEFAULT_SCORE = 1.0  # of a trajectory that comes without one
DEFAULT_THRESHOLD = 1.0  # from which score on it is a success

_SAME_LESSON = 0.85  # likeness from which two lessons of one type are the same
_SAME_TASK = 0.9  # the same of two statements of a task
_KEPT_STEPS = 30  # calls that are kept of a trajectory, for later comparisons
_IMPORTANCE = {SUCCESS: 0.6, FAILURE: 0.6, COMPARISON: 0.7}


class _Attempt(Struct, frozen=True):
    """A trajectory and what is known about it."""

    trajectory: Trajectory
    score: float
    is_success: bool
    task: str
    sources: tuple[str, ...]
    is_doubtful: bool  # some of it is held back

    @property
    def calls(self) -> list[str]:
        return [step.call for step in self.trajectory.steps][:_KEPT_STEPS]


class _Learnt(Struct, frozen=True):
    """A lesson and the memories it comes from: if one of them is deleted, it goes too."""

    lesson: Lesson
    sources: tuple[str, ...]


class TaskDeriver:
    """Derives experiences from trajectories, by rules or with a model."""

    name = "task memory"
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
        """Whether it takes milliseconds: without a model."""
        return self._teacher is None

    async def derive(self, job: Job, known: Known) -> list[Decision]:
        """Return what one trajectory teaches, compared with what is known."""
        attempt = _attempt(job)
        earlier = await _same_task(attempt, known)
        learnt = _distinct(await self._learn(attempt, earlier))
        return [await _decided(each, attempt, known) for each in learnt]

    async def _learn(self, attempt: _Attempt, earlier: Sequence[MemoryItem]) -> list[_Learnt]:
        if self._teacher is None:
            return _by_rules(attempt, earlier)
        outcome = {"score": attempt.score, "is_success": attempt.is_success}
        try:
            lessons = await self._teacher.lessons(
                attempt.trajectory, outcome, [_told(each) for each in earlier]
            )
        except ModelUnavailable:
            raise  # it may pass: the job is tried again
        except ModelFailed:
            return _by_rules(attempt, earlier)
        sources = _joined(attempt, earlier)  # the model has seen them all
        return [_Learnt(lesson, sources) for lesson in lessons]


def _attempt(job: Job) -> _Attempt:
    score = _number("score", job.details, DEFAULT_SCORE)
    threshold = _number("success_threshold", job.details, DEFAULT_THRESHOLD)
    task = job.details.get("task")
    if task is not None and not isinstance(task, str):
        raise BadDecision(f"a trajectory's task must be a str, got {type(task).__name__}")
    trajectory = read_trajectory(job.memories, task)
    return _Attempt(
        trajectory,
        score,
        score >= threshold,
        trajectory.statement,
        tuple(memory.id for memory in job.memories),
        any(memory.is_quarantined for memory in job.memories),
    )


async def _same_task(attempt: _Attempt, known: Known) -> list[MemoryItem]:
    """Return what is known from earlier attempts at the same task, the oldest first."""
    found = await known.similar(attempt.task, kinds=(EXPERIENCE,), top_k=20)
    same = [memory for memory, _ in found if _is_same_task(memory, attempt.task)]
    return sorted(same, key=lambda memory: memory.seq)


def _is_same_task(memory: MemoryItem, task: str) -> bool:
    other = memory.details.get("task")
    return isinstance(other, str) and (other == task or likeness(other, task) >= _SAME_TASK)


def _by_rules(attempt: _Attempt, earlier: Sequence[MemoryItem]) -> list[_Learnt]:
    own = lesson_of(attempt.trajectory, attempt.score, is_success=attempt.is_success)
    learnt = [] if own is None else [_Learnt(own, attempt.sources)]
    other = _other(attempt, earlier)
    compared = None if other is None else _comparison(attempt, other)
    if other is not None and compared is not None:
        learnt.append(_Learnt(compared, _joined(attempt, [other])))
    return learnt


def _other(attempt: _Attempt, earlier: Sequence[MemoryItem]) -> MemoryItem | None:
    """Return the attempt whose score is the furthest away: it teaches the most."""
    scored = [each for each in earlier if is_number(each.details.get("score")) and _steps(each)]
    scored = [each for each in scored if each.details["score"] != attempt.score]
    if not scored or not attempt.calls:
        return None
    return max(scored, key=lambda each: abs(each.details["score"] - attempt.score))


def _comparison(attempt: _Attempt, other: MemoryItem) -> Lesson | None:
    pair = [(attempt.score, attempt.calls), (float(other.details["score"]), _steps(other))]
    (high, better), (low, worse) = sorted(pair, key=lambda each: -each[0])
    return comparison_of(attempt.task, better, worse, (high, low))


def _steps(memory: MemoryItem) -> list[str]:
    if memory.details.get("type") == COMPARISON:
        return []  # it tells of two attempts
    steps = memory.details.get("steps")
    return [step for step in steps if isinstance(step, str)] if isinstance(steps, list) else []


def _distinct(learnt: Sequence[_Learnt]) -> list[_Learnt]:
    """Return what was learnt without what an earlier one of its type says already."""
    kept: list[_Learnt] = []
    for each in learnt:
        same = (other.lesson for other in kept if other.lesson.type == each.lesson.type)
        if all(likeness(other.text, each.lesson.text) < _SAME_LESSON for other in same):
            kept.append(each)
    return kept


async def _decided(learnt: _Learnt, attempt: _Attempt, known: Known) -> Decision:
    """Return how a lesson is kept: confirmed where it is known, added where it is not.

    What is held back must not reach what is not: a doubtful attempt only adds.
    """
    lesson = learnt.lesson
    if not attempt.is_doubtful:
        for memory, alike in await known.similar(lesson.text, kinds=(EXPERIENCE,), top_k=5):
            if alike >= _SAME_LESSON and memory.details.get("type") == lesson.type:
                return Adjust(memory.id, counters={"confirmations": 1})
    return Add(_draft(learnt, attempt))


def _draft(learnt: _Learnt, attempt: _Attempt) -> Draft:
    lesson = learnt.lesson
    details = {
        "type": lesson.type,
        "when_to_use": lesson.when_to_use,
        "lesson": lesson.lesson,
        "score": attempt.score,
        "uses": 0,
        "successes": 0,
        "confirmations": 0,
        "tools": list(lesson.tools),
        "task": attempt.task,
        "steps": attempt.calls,
    }
    return Draft(
        value=lesson.text,
        text=lesson.text,
        kind=EXPERIENCE,
        title=attempt.task[:120] if attempt.task else None,
        details=details,
        importance=_IMPORTANCE[lesson.type],
        origin=Origin(TaskDeriver.name, learnt.sources),
    )


def _joined(attempt: _Attempt, memories: Sequence[MemoryItem]) -> tuple[str, ...]:
    """Return where an attempt and some memories come from, each source once."""
    origins = [memory.origin for memory in memories if memory.origin is not None]
    older = [source for origin in origins for source in origin.derived_from]
    return tuple(dict.fromkeys((*attempt.sources, *older)))


def _told(memory: MemoryItem) -> dict[str, Any]:
    told = ("type", "lesson", "score", "steps")
    return {name: memory.details[name] for name in told if name in memory.details}


def _number(name: str, details: Mapping[str, Any], default: float) -> float:
    value = details.get(name)
    if value is None:
        return default
    if not is_number(value):
        raise BadDecision(f"a trajectory's {name} must be a number, got {value!r}")
    return float(value)
