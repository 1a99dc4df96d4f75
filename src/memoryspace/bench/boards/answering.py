"""Answers of a chat model that sees of a data set only what the memory under test has found.

Each question is searched for, what was found goes into a prompt as data, and the answer is judged:
EM and F1 beside the gold answers, and success, which a model decides that sees question, gold
answers and answer, not the memory. ``nothing`` is the same model without a memory: what it knows
already. Every answer is kept in ``answers.jsonl`` as soon as it is there: an interrupted run asks
no question twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

from ...errors import ModelFailed, ModelUnavailable
from ...evaluation.answers import exact_match, f1
from ...evaluation.datasets import Question
from ...model import ChatModel, ask, prompt_messages, read_prompt
from ...retrieval import Entry
from ..harness.experiment import Asked, CannotRun, CellResult
from ..streams.asking import Measured, measured
from .said import SaidBefore

AT_ONCE = 4  # questions that a model is asked at the same time
NOT_CONFIGURED = (
    "no chat model is configured, so no answers were judged; pass --model-url URL --model NAME, "
    "and the key, if there is one, in MEMORYSPACE_MODEL_KEY"
)

Tick = Callable[[int, int], None]
T = TypeVar("T", bound=msgspec.Struct)

_PACKAGE = __package__ or ""


class Said(msgspec.Struct, frozen=True):
    """What a model answers."""

    answer: str


class Verdict(msgspec.Struct, frozen=True):
    """What a judge says."""

    passes: bool


@dataclass(frozen=True)
class Task:
    """A question, when it is asked, and what a memory found for it; ``None`` if there is none."""

    question: Question
    now: float | None
    found: Sequence[Entry] | None


@dataclass(frozen=True)
class Marked:
    """What came of a task."""

    question: Question
    answer: str
    success: float
    trouble: str = ""  # why there is no answer


class Examiner:
    """Puts tasks to a model and lets another, or the same, mark the answers."""

    def __init__(self, model: ChatModel, judge: ChatModel, before: SaidBefore) -> None:
        self._model = model
        self._judge = judge
        self._before = before

    def examine(self, tasks: Sequence[Task], tick: Tick) -> CellResult:
        """Return figures over all tasks; ``CannotRun`` if the model is out of reach."""
        try:
            marked = asyncio.run(self._all(tasks, tick))
        except ModelUnavailable as error:
            raise CannotRun(f"answers were not judged: {error}") from error
        troubles = [each.trouble for each in marked if each.trouble]
        if len(troubles) * 2 > len(marked):
            raise CannotRun(
                f"{len(troubles)} of {len(marked)} answers cannot be used: {troubles[-1]}"
            )
        return result_of(marked)

    async def _all(self, tasks: Sequence[Task], tick: Tick) -> list[Marked]:
        turn, done = asyncio.Semaphore(AT_ONCE), 0

        async def one(task: Task) -> Marked:
            nonlocal done
            async with turn:
                marked = await self._marked(task)
            done += 1
            tick(done, len(tasks))
            return marked

        try:
            async with asyncio.TaskGroup() as group:
                waiting = [group.create_task(one(task)) for task in tasks]
        except* ModelUnavailable as errors:
            raise errors.exceptions[0] from None
        return [each.result() for each in waiting]

    async def _marked(self, task: Task) -> Marked:
        try:
            said = await self._asked(self._model, prompt_of(task), Said)
            success = await self._success(task.question, said.answer)
        except ModelUnavailable:
            raise
        except ModelFailed as error:
            return Marked(task.question, "", 0.0, str(error))
        return Marked(task.question, said.answer, success)

    async def _success(self, question: Question, answer: str) -> float:
        if question.answers and not question.rubric and exact_match(answer, question.answers):
            return 1.0
        data = {
            "question": question.text,
            "right_answers": list(question.answers),
            "points": list(question.rubric),
            "answer": answer,
        }
        messages = prompt_messages(read_prompt(_PACKAGE, "judge.md"), data)
        return float((await self._asked(self._judge, messages, Verdict)).passes)

    async def _asked(
        self, model: ChatModel, messages: Sequence[Mapping[str, str]], answer: type[T]
    ) -> T:
        kept = self._before.get(model.name, messages, answer)
        if kept is not None:
            return kept
        found = await ask(model, messages, answer)
        self._before.keep(model.name, messages, found)
        return found


def prompt_of(task: Task) -> Sequence[Mapping[str, str]]:
    """Return what a model is asked: nothing of the data set but the question and what was found."""
    asked: dict[str, Any] = {"text": task.question.text}
    if task.now is not None:
        asked["date"] = _date(task.now)
    if task.found is None:
        return prompt_messages(read_prompt(_PACKAGE, "guess.md"), {"question": asked})
    found = [_told(entry) for entry in task.found]
    return prompt_messages(read_prompt(_PACKAGE, "answer.md"), {"found": found, "question": asked})


def result_of(marked: Sequence[Marked]) -> CellResult:
    """Return the means, over all and by category, with what was answered beside what is right."""
    asked = [
        Asked(each.question.id, each.question.answers, (each.answer,), each.question.category)
        for each in marked
    ]
    values = [
        Measured(each.question.category, {"success": each.success, **_overlap(each)})
        for each in marked
    ]
    result = measured(values)
    figures = {**result.figures, "unusable": sum(bool(each.trouble) for each in marked)}
    return CellResult(figures, intervals=result.intervals, ranks=asked)


def _overlap(each: Marked) -> dict[str, float]:
    """Where a data set says only what an answer does, there is nothing to overlap with."""
    gold = each.question.answers
    return {"EM": exact_match(each.answer, gold), "F1": f1(each.answer, gold)} if gold else {}


def _told(entry: Entry) -> dict[str, str]:
    told = {"title": entry.title, "speaker": entry.speaker or entry.role, "text": entry.text}
    if entry.time is not None:
        told["date"] = _date(entry.time)
    return {name: value for name, value in told.items() if value is not None}


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%A, %d %B %Y, %H:%M")
