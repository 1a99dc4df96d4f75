"""Lessons by a chat model: one call proposes them, a second call checks them all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct, to_builtins

from ....model import ChatModel, Spending, ask, prompt_messages, read_prompt
from .grounding import Sources
from .rules import Lesson
from .trajectory import Trajectory, clipped

_MAX_LESSONS = 8  # of one trajectory
_MAX_TEXT = 600  # characters of each part of a lesson
_MAX_STEPS = 60

# The JSON schemas sent to the model contain the names and docstrings of the structs below.


class TaughtLesson(Struct):
    """A lesson as a model words it."""

    type: Literal["success", "failure", "comparison"]
    when_to_use: str
    lesson: str
    tools: list[str]


class Lessons(Struct):
    """All that a model learns from one trajectory."""

    lessons: list[TaughtLesson]


class Verdict(Struct):
    """Whether one lesson, named by its id, is worth keeping."""

    id: str
    keep: bool
    score: float


class Verdicts(Struct):
    """A verdict on each lesson."""

    verdicts: list[Verdict]


class Teacher:
    """Asks a chat model for the lessons of a trajectory."""

    def __init__(self, model: ChatModel, spending: Spending | None, min_score: float) -> None:
        self._model = model
        self._spending = spending
        self._min_score = min_score

    async def lessons(
        self,
        trajectory: Trajectory,
        outcome: Mapping[str, Any],
        earlier: Sequence[Mapping[str, Any]],
    ) -> list[Lesson]:
        """Return lessons that are grounded in the runs and pass the model's own check.

        Raises:
            ModelFailed: The model gave no valid answer.
        """
        data = {"trajectory": _told(trajectory), "outcome": outcome, "earlier_attempts": earlier}
        prompt = prompt_messages(read_prompt(__package__, "lessons.md"), data)
        answer = await ask(
            self._model, prompt, Lessons, spending=self._spending, purpose="task lessons"
        )
        sources = Sources(_words_in(data))
        found = [sources.grounded(_lesson(each)) for each in answer.lessons[:_MAX_LESSONS]]
        return await self._checked([each for each in found if each is not None], data)

    async def _checked(self, lessons: Sequence[Lesson], data: Mapping[str, Any]) -> list[Lesson]:
        if not lessons:
            return []
        named = {f"lesson-{number}": lesson for number, lesson in enumerate(lessons, 1)}
        asked = [{"id": name, **to_builtins(lesson)} for name, lesson in named.items()]
        prompt = prompt_messages(read_prompt(__package__, "check.md"), {**data, "lessons": asked})
        answer = await ask(
            self._model, prompt, Verdicts, spending=self._spending, purpose="task check"
        )
        kept = {each.id for each in answer.verdicts if each.keep and each.score >= self._min_score}
        return [lesson for name, lesson in named.items() if name in kept]


def _words_in(data: Any) -> Iterator[str]:
    """Yield all texts in nested data."""
    if isinstance(data, Mapping):
        for name, value in data.items():
            yield str(name)
            yield from _words_in(value)
    elif isinstance(data, list | tuple):
        for value in data:
            yield from _words_in(value)
    elif data is not None:
        yield str(data)


def _lesson(taught: TaughtLesson) -> Lesson:
    return Lesson(
        taught.type,
        clipped(taught.when_to_use, _MAX_TEXT),
        clipped(taught.lesson, _MAX_TEXT),
        tuple(dict.fromkeys(taught.tools)),
    )


def _told(trajectory: Trajectory) -> dict[str, Any]:
    steps = trajectory.steps
    if len(steps) > _MAX_STEPS:  # the first and the last ones
        steps = steps[: _MAX_STEPS // 2] + steps[-_MAX_STEPS // 2 :]
    return {
        "task": trajectory.statement,
        "steps": [to_builtins(step) for step in steps],
        "steps_in_all": len(trajectory.steps),
        "last_answer": trajectory.conclusion,
        "user_said_to_it": trajectory.correction,
    }
