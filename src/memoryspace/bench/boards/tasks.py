"""Task and tool memory on families of agent work: does the next run get the lesson it needs?

For every new task: is the insight from earlier runs returned, first or among three? For unseen
tasks and tools: is nothing returned? Results are judged by string matching, without a model.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...evaluation.lessons import Row, Value, judge, read_lessons
from ...service import ServiceSettings
from ..command import main_of
from ..harness.data import Data
from ..harness.experiment import Cell, CellResult, Claim, Experiment, Plot, Table
from ..harness.findings import Findings, Group, NotMeasured
from ..harness.intervals import share, share_interval
from ..harness.options import Options, option
from .recall_boards import EMBEDDERS, embedder_of

FILE = "task.jsonl"
WORDS = "none"
GOALS: Mapping[bool, Mapping[str, float]] = {  # with vectors or not → the target of each measure
    True: {"first": 0.75, "in_3": 0.92, "stored": 0.97, "silent": 0.90},
    False: {"first": 0.60, "in_3": 0.82, "stored": 0.97, "silent": 0.80},
}


@dataclass(frozen=True)
class TasksOptions(Options):
    """The embedder; words alone are always measured as well."""

    seeds: tuple[int, ...] = option((1,), "unused: nothing here is random")
    embedder: str = option("best", "the embedder", quick=WORDS, choices=EMBEDDERS)
    cache: Path | None = option(  # noqa: RUF009  # it is a field
        None, "folder that caches vectors", private=True
    )


def cells(options: TasksOptions, data: Data) -> list[Cell]:
    """Return a cell for words alone, and one for words and vectors."""
    embedder = embedder_of(options.embedder, None)
    names = [WORDS] if embedder is None else [WORDS, embedder.name]
    return [{"data": data.label, "embedder": name} for name in names]


def run(cell: Cell, data: Data) -> CellResult:
    """Add all runs to one memory, then search it."""
    assert isinstance(data.options, TasksOptions)
    rows: list[Row] = data.once("rows", lambda: read_lessons(data.bytes_of(FILE)))
    chosen = WORDS if cell["embedder"] == WORDS else data.options.embedder
    settings = ServiceSettings(embedder=embedder_of(chosen, data.options.cache))
    started = time.perf_counter()
    values = asyncio.run(judge(rows, settings))
    return result_of(values, time.perf_counter() - started)


def result_of(values: Sequence[Value], seconds: float = 0.0) -> CellResult:
    """Return the mean of each measure, with its interval over whole families or tools."""
    clusters: dict[str, dict[str, list[float]]] = {}
    for each in values:
        measure = clusters.setdefault(each.measure, {})
        measure.setdefault(each.cluster, []).append(float(each.value))
    counts = {
        name: [(sum(part), len(part)) for part in parts.values()]
        for name, parts in clusters.items()
    }
    asked = sum(of for _, of in counts.get("in_3", ()))
    figures = {"n": float(asked), **{name: share(part) for name, part in counts.items()}}
    intervals = {name: share_interval(part) for name, part in counts.items()}
    return CellResult(figures, {"seconds": seconds}, intervals=intervals)


def _reaches(found: Findings) -> bool:
    return all(
        _mean(group, name) >= least
        for group in found.groups
        for name, least in _goals(group).items()
    )


def _beside_goals(found: Findings) -> str:
    """Return the measured value, with the target in brackets."""
    return "; ".join(
        f"{group.cell['embedder']}: "
        + ", ".join(f"{name} {_mean(group, name):.2f} ({least})" for name, least in goals.items())
        for group in found.groups
        for goals in (_goals(group),)
    )


def _goals(group: Group) -> Mapping[str, float]:
    return GOALS[group.cell["embedder"] != WORDS]


def _mean(group: Group, name: str) -> float:
    if name not in group.figures:
        raise NotMeasured(name)
    return group.figures[name].mean


def _never_misled(found: Findings) -> bool:
    return all(_mean(group, "misled") == 0 for group in found.groups)


EXPERIMENT = Experiment(
    "tasks",
    "whether the next run gets the lesson that earlier runs have taught",
    TasksOptions,
    cells,
    run,
    files=lambda options: (FILE,),
    tables=(
        Table(
            "Lessons for new tasks",
            columns=("n", "first", "in_3", "in_3_by_failures", "misled", "stored",
                     "stored_twice", "silent", "seconds"),
            rows=("embedder",),
            note="first, in 3: the insight is in the first lesson, in one of three; by failures: "
            "only failed runs have shown it. misled: the first lesson is an outdated way without a "
            "warning. silent: nothing comes for a task never seen. Intervals: bootstrap over whole "
            "families.",
        ),
        Table(
            "New tasks by what they ask",
            columns=("first", "in_3"),
            rows=("embedder", "category"),
            parts="category",
        ),
        Table(
            "Tools, and the use of lessons",
            columns=("tool_cause", "tool_usage", "tool_figures", "tool_silent", "used_right",
                     "pruned_right"),
            rows=("embedder",),
            note="cause, usage: in three memories found without the tool's name. figures: success "
            "rate, median seconds and most frequent error are right. used right: after five uses a "
            "lesson is first still if they helped, and no longer if not; pruned right: it is kept "
            "if they helped, and forgotten if not.",
        ),
    ),
    plots=(
        Plot("tasks-categories", "Insight among three lessons", "bars", "in_3", "category",
             "embedder", parts="category", better="higher"),
    ),
    claims=(
        Claim("first, in 3, stored and silent reach what was aimed at", _reaches, _beside_goals),
        Claim("no outdated way comes first without a warning", _never_misled),
    ),
    notes="A set of some dozen families is small: look at the intervals.",
)  # fmt: skip

if __name__ == "__main__":
    main_of(EXPERIMENT)
