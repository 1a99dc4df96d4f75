"""Lessons without a model: taken from what happened, in its own words."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from .task_trajectory import Step, Trajectory, clipped

SUCCESS, FAILURE, COMPARISON = "success", "failure", "comparison"

_MAX_STEPS = 12  # that are told of a long trajectory
_BEFORE = 3  # steps that are told of what came before a failure


class Lesson(Struct, frozen=True):
    """Something learnt: of which type, when it is of use, and what it says."""

    type: str
    when_to_use: str
    lesson: str
    tools: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """What a search sees, and what a model is told."""
        return f"{self.when_to_use}\n{self.lesson}"


def lesson_of(trajectory: Trajectory, score: float, *, is_success: bool) -> Lesson | None:
    """Return what one trajectory teaches; ``None`` if nothing happened in it."""
    if not trajectory.statement or not (trajectory.steps or trajectory.conclusion):
        return None
    body = _what_worked(trajectory) if is_success else _what_failed(trajectory, score)
    kind = SUCCESS if is_success else FAILURE
    return Lesson(kind, when_to_use(trajectory.statement), body, tuple(trajectory.tools))


def comparison_of(
    statement: str, better: Sequence[str], worse: Sequence[str], scores: tuple[float, float]
) -> Lesson | None:
    """Return what the better of two lists of calls has that the worse has not, and the reverse."""
    only_better = [call for call in dict.fromkeys(better) if call not in set(worse)]
    only_worse = [call for call in dict.fromkeys(worse) if call not in set(better)]
    if not only_better and not only_worse:
        return None
    parts = [f"Two attempts scored {scores[0]:g} and {scores[1]:g}."]
    if only_better:
        parts.append(f"Only the better one called {_listed(only_better)}.")
    if only_worse:
        parts.append(f"Only the worse one called {_listed(only_worse)}.")
    tools = tuple(dict.fromkeys(call.partition("(")[0] for call in only_better))
    return Lesson(COMPARISON, when_to_use(statement), " ".join(parts), tools)


def when_to_use(statement: str) -> str:
    """Return when a lesson on a task is of use."""
    return f"For a task like: {statement}"


def _what_worked(trajectory: Trajectory) -> str:
    steps = [step for step in trajectory.steps if not step.is_failure]
    if not steps:
        return f"What was answered: {trajectory.conclusion}"
    told = f"Steps that worked: {_chain(steps)}."
    failures = [step for step in trajectory.steps if step.is_failure]
    if failures:
        told += f" What failed on the way: {_failure(failures[-1])}."
    return told


def _what_failed(trajectory: Trajectory, score: float) -> str:
    told = f"It ended badly (score {score:g})."
    places = [place for place, step in enumerate(trajectory.steps) if step.is_failure]
    if places:
        last = places[-1]
        told += f" The last failure was {_failure(trajectory.steps[last])}"
        before = trajectory.steps[max(0, last - _BEFORE) : last]
        return told + (f", after {_chain(before)}." if before else ".")
    if trajectory.steps:
        return (
            f"{told} No tool failed, but these steps were not enough: {_chain(trajectory.steps)}."
        )
    return f"{told} What was answered: {trajectory.conclusion}"


def _chain(steps: Sequence[Step]) -> str:
    calls = [step.call for step in steps]
    if len(calls) > _MAX_STEPS:
        half = _MAX_STEPS // 2
        left_out = len(calls) - 2 * half
        calls = [*calls[:half], f"({left_out} more)", *calls[-half:]]
    return " → ".join(calls)


def _failure(step: Step) -> str:
    return f"{step.call}, which answered: {clipped(step.output or '', 160)}"


def _listed(calls: Sequence[str]) -> str:
    shown = [*calls[:_MAX_STEPS]]
    more = len(calls) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
