"""Questions answered by a chat model that sees only what the memory under test retrieved.

Each question is searched for, the hits go into a prompt as data, and the answer is scored: EM and
F1 against the gold answers, and success, decided by a model that sees question, gold answers and
answer but not the memory. ``nothing`` is the same model without a memory, a baseline for what it
already knows. Every answer is written to ``answers.jsonl`` as soon as it arrives, so an interrupted
run asks no question twice.
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
from .answer_cache import AnswerCache

AT_ONCE = 4  # questions in flight at once
NOT_CONFIGURED = (
    "no chat model is configured, so no answers were judged; pass --model-url URL --model NAME, "
    "and the key, if there is one, in MEMORYSPACE_MODEL_KEY"
)

Tick = Callable[[int, int], None]
T = TypeVar("T", bound=msgspec.Struct)

_PACKAGE = __package__ or ""


class Said(msgspec.Struct, frozen=True):
    """A model's answer."""

    answer: str


class Verdict(msgspec.Struct, frozen=True):
    """A judge's verdict."""

    passes: bool


@dataclass(frozen=True)
class Task:
    """A question, when it is asked, and the retrieved texts; ``None`` without a memory."""

    question: Question
    now: float | None
    found: Sequence[Entry] | None


@dataclass(frozen=True)
class JudgedAnswer:
    """A task with its answer and scores."""

    question: Question
    answer: str
    success: float
    trouble: str = ""  # the error, if there is no answer


class Examiner:
    """Puts tasks to a model and has the same or another model judge the answers."""

    def __init__(self, model: ChatModel, judge: ChatModel, before: AnswerCache) -> None:
        self._model = model
        self._judge = judge
        self._before = before

    def examine(self, tasks: Sequence[Task], tick: Tick) -> CellResult:
        """Return figures over all tasks; raise ``CannotRun`` if the model cannot be reached."""
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

    async def _all(self, tasks: Sequence[Task], tick: Tick) -> list[JudgedAnswer]:
        turn, done = asyncio.Semaphore(AT_ONCE), 0

        async def one(task: Task) -> JudgedAnswer:
            nonlocal done
            async with turn:
                marked = await self._judged(task)
            done += 1
            tick(done, len(tasks))
            return marked

        try:
            async with asyncio.TaskGroup() as group:
                waiting = [group.create_task(one(task)) for task in tasks]
        except* ModelUnavailable as errors:
            raise errors.exceptions[0] from None
        return [each.result() for each in waiting]

    async def _judged(self, task: Task) -> JudgedAnswer:
        try:
            said = await self._asked(self._model, prompt_of(task), Said)
            success = await self._success(task.question, said.answer)
        except ModelUnavailable:
            raise
        except ModelFailed as error:
            return JudgedAnswer(task.question, "", 0.0, str(error))
        return JudgedAnswer(task.question, said.answer, success)

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
    """Return the prompt. It holds nothing of the data set but the question and the hits."""
    asked: dict[str, Any] = {"text": task.question.text}
    if task.now is not None:
        asked["date"] = _date(task.now)
    if task.found is None:
        return prompt_messages(read_prompt(_PACKAGE, "guess.md"), {"question": asked})
    found = [_told(entry) for entry in task.found]
    return prompt_messages(read_prompt(_PACKAGE, "answer.md"), {"found": found, "question": asked})


def result_of(marked: Sequence[JudgedAnswer]) -> CellResult:
    """Return the means, overall and by category, with each answer beside the gold answers."""
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


def _overlap(each: JudgedAnswer) -> dict[str, float]:
    """Return EM and F1; none where a data set has a rubric instead of gold answers."""
    gold = each.question.answers
    return {"EM": exact_match(each.answer, gold), "F1": f1(each.answer, gold)} if gold else {}


def _told(entry: Entry) -> dict[str, str]:
    told = {"title": entry.title, "speaker": entry.speaker or entry.role, "text": entry.text}
    if entry.time is not None:
        told["date"] = _date(entry.time)
    return {name: value for name, value in told.items() if value is not None}


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%A, %d %B %Y, %H:%M")
