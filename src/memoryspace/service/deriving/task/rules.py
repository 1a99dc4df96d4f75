"""Lessons without a model: what good runs did and what bad runs did instead, quoted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from .runs import RunComparison, TaskRun, all_words_in, is_same_failure, overlap
from .trajectory import ToolStep, clipped

SUCCESS, FAILURE, COMPARISON = "success", "failure", "comparison"

_MAX_TASKS = 3  # statements that say when a lesson applies
_MAX_STATEMENT = 200
_MAX_STEPS = 10  # calls shown of one run
_MAX_FAILURES = 4  # warnings of one lesson
_MAX_REASON = 200  # characters of an error, a correction or a conclusion
_MAX_ANSWER = 90  # characters of a tool's answer that is no error
_REPEATS = 0.8  # overlap from which a text repeats another


class Lesson(Struct, frozen=True):
    """A lesson: its type, when to use it, and what it says."""

    type: str
    when_to_use: str
    lesson: str
    tools: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The text that is searched and shown to a model."""
        return f"{self.when_to_use}\n{self.lesson}"


def lesson_of(runs: Sequence[TaskRun], comparison: RunComparison) -> Lesson | None:
    """Return the lesson of runs, given oldest first; ``None`` if they teach nothing."""
    runs = upheld_runs(runs, comparison)
    good = [run for run in reversed(runs) if run.is_success]
    bad = [run for run in reversed(runs) if not run.is_success]
    words = _words_for(runs)
    advice = [words.do.format(_done(run)) for run in _ways(good) if _done(run)]
    advice += [words.avoid.format(each) for each in _warnings(good, bad, words)][:_MAX_FAILURES]
    if not advice or not any(run.task for run in runs):
        return None
    kind = COMPARISON if good and bad else SUCCESS if good else FAILURE
    tools = [tool for run in (*good, *bad) for tool in run.tools]
    return Lesson(kind, _when(runs, words), "\n".join(advice), tuple(dict.fromkeys(tools)))


def upheld_runs(runs: Sequence[TaskRun], comparison: RunComparison) -> list[TaskRun]:
    """Return runs without those whose approach fails in a later run."""
    return [
        run
        for at, run in enumerate(runs)
        if not any(_is_contradicted(run, later, comparison) for later in runs[at + 1 :])
    ]


def _is_contradicted(run: TaskRun, later: TaskRun, comparison: RunComparison) -> bool:
    """Return whether a call that worked in a run fails in a later run of the same task."""
    if not run.is_success or not comparison.is_same_task(run, later):
        return False
    failed = {_form_of(step, later) for step in later.steps if step.is_failure}
    return any(_form_of(step, run) in failed for step in run.steps if not step.is_failure)


def _form_of(step: ToolStep, run: TaskRun) -> frozenset[int]:
    """Return the words of a call without those of the task, which vary between runs."""
    return all_words_in(step.call) - all_words_in(run.task)


class _Words(Struct, frozen=True):
    """The templates of a lesson in one language."""

    when: str
    do: str
    avoid: str
    not_enough: str
    said: str


_ENGLISH = _Words(
    "For a task like: {}",
    "Do: {}",
    "Avoid (it failed): {}",
    "{} (no error, but not what was wanted)",
    "The user said: {}",
)
_CHINESE = _Words(
    "适用于这样的任务：{}",
    "应当：{}",
    "避免（失败过）：{}",
    "{}（没有报错，但结果不对）",
    "用户指出：{}",
)


def _words_for(runs: Sequence[TaskRun]) -> _Words:
    text = "".join(run.task for run in runs)
    ideographs = sum("一" <= letter <= "鿿" for letter in text)
    return _CHINESE if 4 * ideographs > len(text) else _ENGLISH


def _when(runs: Sequence[TaskRun], words: _Words) -> str:
    """Return the distinct task statements, newest first."""
    told: list[str] = []
    for run in reversed(runs):
        task = clipped(run.task, _MAX_STATEMENT)
        if task and all(overlap(task, other) < _REPEATS for other in told):
            told.append(task)
    return words.when.format(" | ".join(told[:_MAX_TASKS]))


def _ways(good: Sequence[TaskRun]) -> list[TaskRun]:
    """Return the best successful runs that differ in their approach, two at most."""
    ways: list[TaskRun] = []
    for run in sorted(good, key=lambda run: -run.score):
        if all(_is_new(run, other) for other in ways):
            ways.append(run)
    return ways[:2]


def _is_new(run: TaskRun, other: TaskRun) -> bool:
    if not run.steps or not other.steps:
        return overlap(run.conclusion, other.conclusion) < _REPEATS
    return any(not _has(other.steps, step) for step in run.steps if not step.is_failure)


def _done(run: TaskRun) -> str:
    """Return the successful calls of a run and its conclusion."""
    worked = [step.call for step in run.steps if not step.is_failure]
    told = [_chain(worked)] if worked else []
    told += [clipped(each, _MAX_REASON) for each in (run.conclusion, run.correction) if each]
    return _sentences(told)


def _warnings(good: Sequence[TaskRun], bad: Sequence[TaskRun], words: _Words) -> Iterator[str]:
    """Yield what to avoid: failed calls, then steps of bad runs that raised no error."""
    told: list[ToolStep] = []
    right = [step for run in good for step in run.steps if not step.is_failure]
    for run in (*bad, *good):
        for step in reversed(run.steps):
            if step.is_failure and not any(is_same_failure(step, each) for each in told):
                told.append(step)
                yield _answered(step, _MAX_REASON)
    for run in bad:
        yield from _seeming(run, right, words)


def _seeming(run: TaskRun, right: Sequence[ToolStep], words: _Words) -> Iterator[str]:
    """Yield what a bad run did without an error and no good run did."""
    wrong = [step for step in run.steps if not step.is_failure and not _has(right, step)]
    if run.steps and not wrong and not run.correction:
        return
    told = [_chain([_answered(step, _MAX_ANSWER) for step in wrong])] if wrong else []
    if run.conclusion:
        told.append(clipped(run.conclusion, _MAX_REASON))
    said = [words.said.format(clipped(run.correction, _MAX_REASON))] if run.correction else []
    yield _sentences([words.not_enough.format(_sentences(told)), *said])


def _has(steps: Sequence[ToolStep], step: ToolStep) -> bool:
    return any(each.tool == step.tool and each.arguments == step.arguments for each in steps)


def _answered(step: ToolStep, most: int) -> str:
    answer = clipped(step.output or "", most).strip()
    return f"{step.call} ⇒ {answer}" if answer.strip("\"'") else step.call


def _sentences(parts: Sequence[str]) -> str:
    """Join parts, ending each like a sentence except the last."""
    told = [part.rstrip(".。 ") for part in parts]
    ended = [part if part[-1:] in ("?", "!", "？", "！") else f"{part}." for part in told]
    return " ".join(ended).removesuffix(".")


def _chain(calls: Sequence[str]) -> str:
    if len(calls) > _MAX_STEPS:
        half = _MAX_STEPS // 2
        calls = [*calls[:half], f"({len(calls) - 2 * half} more)", *calls[-half:]]
    return " → ".join(calls)
