"""Whether lessons help: a board on runs of real agent work, and a simulation of their use.

The board, with a file of runs as ``--data-path``, asks of every new task whether the insight that
an earlier run held is handed over; no model judges anything. The simulation knows what each lesson
is worth: how often it helps. It counts the successes lost against whoever always takes the best
lesson (regret).
"""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...record import Origin
from ...service import (
    MemoryHit,
    ServiceSettings,
    StoredMemoryService,
    TaskMemoryService,
    ToolMemoryService,
)
from ...service.deriving.contract import Add, Decision, Job, Known
from ...service.memory import Draft, MemoryItem
from ...store import MemoryStore
from ..boards.recall_boards import embedder_of
from ..harness.benchmark import Benchmark, Chart, Grid, Raw, Run
from ..harness.data import unpacked
from ..harness.options import Flags, option

AGENT = "agent"
ROUNDS = 1000  # of the bootstrap
TASKS, CHOICES = 10, 3  # of the simulation: kinds of tasks, and lessons for each
SEEDS = range(5)

Values = dict[str, list[tuple[str, float]]]  # measure → (family, value)


# -- the board -------------------------------------------------------------------------------------


async def board(rows: Sequence[dict[str, Any]], settings: ServiceSettings) -> Values:
    """Return every measure, its values by family or tool."""
    got: Values = defaultdict(list)
    async with TaskMemoryService(settings=settings) as tasks:
        families = [row for row in rows if row["type"] == "family"]
        for run in (run for family in families for run in family["trajectories"]):
            await tasks.add_trajectory(AGENT, run["messages"], score=run["score"])
        stored = [each.text for each in (await tasks.page(AGENT, limit=500)).memories]
        for family in families:
            insights = {each["id"]: each for each in family["insights"]}
            for insight in insights.values():
                copies = sum(holds(text, right(insight)) for text in stored)
                got["insight stored"].append((family["id"], float(copies > 0)))
                got["stored more than once"].append((family["id"], float(copies > 1)))
            for question in family["questions"]:
                hits = await tasks.search(AGENT, question["query"], top_k=3)
                score(got, family["id"], question, insights[question["insight"]], hits)
        for row in rows:
            if row["type"] == "abstain":
                found = await tasks.search(AGENT, row["query"], top_k=3)
                got["silent on tasks never seen"].append((row["id"], float(not found)))
    async with ToolMemoryService(settings=settings) as tools:
        for row in (row for row in rows if row["type"] == "tool"):
            await tools.add_tool_call_results(AGENT, row["calls"])
        for row in (row for row in rows if row["type"] == "tool"):
            for question in row["questions"]:
                if question["category"] in ("cause", "usage"):
                    hits = await tools.search(AGENT, question["query"], top_k=3)
                    found_it = any(holds(hit.memory.text, question["gold"]) for hit in hits)
                    got[f"tool {question['category']} in 3"].append((row["name"], float(found_it)))
    return got


def score(
    got: Values,
    family: str,
    question: dict[str, Any],
    insight: dict[str, Any],
    hits: list[MemoryHit],
) -> None:
    """Note whether hits hold an insight, and whether the first misleads."""
    held = [holds(hit.memory.text, right(insight)) for hit in hits]
    got["insight first"].append((family, float(any(held[:1]))))
    got["insight in 3"].append((family, float(any(held))))
    if question["category"] == "failure_only":
        got["failure-only in 3"].append((family, float(any(held))))
    if insight["kind"] == "outdated":
        do = hits[0].memory.text.partition("Avoid")[0] if hits else ""
        misled = bool(hits) and not held[0] and holds(do, insight["misleading"])
        got["outdated way first"].append((family, float(misled)))


def right(insight: dict[str, Any]) -> list[str]:
    """Return the strings of which one shows that an insight is there."""
    return [*insight["gold"], *insight["also"]]


def holds(text: str, strings: Sequence[str]) -> bool:
    """Tell whether a text has one of some strings, white space aside."""
    flat = re.sub(r"\s+", "", text).casefold()
    return any(re.sub(r"\s+", "", each).casefold() in flat for each in strings)


def interval(values: Sequence[tuple[str, float]]) -> tuple[float, float, float]:
    """Return a mean with its 95 % interval, by a bootstrap over whole families."""
    groups: dict[str, list[float]] = defaultdict(list)
    for name, value in values:
        groups[name].append(value)
    rng, parts = random.Random(7), list(groups.values())
    means = sorted(
        sum(drawn) / len(drawn)
        for drawn in (
            [value for part in rng.choices(parts, k=len(parts)) for value in part]
            for _ in range(ROUNDS)
        )
    )
    mean = sum(value for _, value in values) / len(values)
    return mean, means[ROUNDS // 40], means[-ROUNDS // 40]


# -- the simulation --------------------------------------------------------------------------------


class Told:
    """A deriver whose lessons are what it is told."""

    name, kinds, is_quick = "told lessons", ("experience",), True

    async def derive(self, job: Job, known: Known) -> list[Decision]:
        """Return each message of a job as a lesson."""
        return [Add(_lesson(each)) for each in job.memories]


def _lesson(memory: MemoryItem) -> Draft:
    origin = Origin(Told.name, (memory.id,))
    return Draft(value=memory.text, text=memory.text, kind="experience", origin=origin)


async def regrets(runs: int, seed: int, *, is_told: bool) -> list[float]:
    """Return the successes lost after each run; lessons' uses are told, or are not."""
    rng = random.Random(seed)
    worth = {(task, n): rng.random() for task in range(TASKS) for n in range(CHOICES)}
    store, settings = MemoryStore(), ServiceSettings(embedder=None)
    lost, curve = 0.0, []
    async with StoredMemoryService(store, derivers=[Told()], settings=settings) as service:
        texts = {
            f"For a task like: job{task} plan{task} goal{task}\nDo: way{n}": (task, n)
            for task, n in worth
        }
        await service.add_memory(AGENT, rng.sample(list(texts), len(texts)))
        for _ in range(runs):
            task = rng.randrange(TASKS)
            [hit] = await service.search(
                AGENT, f"job{task} plan{task} goal{task}", top_k=1, min_relevance=0.0
            )
            chosen = worth[texts[hit.memory.text]]
            if is_told:
                await service.record_use(AGENT, hit.memory.id, helped=rng.random() < chosen)
            lost += max(worth[task, n] for n in range(CHOICES)) - chosen
            curve.append(lost)
    return curve


# -- the benchmark ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class LessonsOptions(Flags):
    """How long the simulation is, and who makes vectors for the board."""

    runs: int = option(200, "of the simulation", quick=40)
    embedder: str = option("none", "who makes vectors", choices=("none", "best"))


def measure(options: LessonsOptions, run: Run) -> Raw:
    """Simulate; with data, run the board. Without, the last board is kept."""
    run.say("simulation")
    curves = {
        name: [asyncio.run(regrets(options.runs, seed, is_told=is_told)) for seed in SEEDS]
        for name, is_told in (("uses told", True), ("uses not told", False))
    }
    kept: Raw = {"curves": curves, "board": run.before.get("board", {})}
    if run.data_path is not None:
        run.say("board")
        kept["board"] = _board(run.data_path, options.embedder)
    return kept


def _board(path: Path, name: str) -> Raw:
    embedder = embedder_of(name, None)
    rows = [json.loads(line) for line in unpacked(path).splitlines()]
    found = asyncio.run(board(rows, ServiceSettings(embedder=embedder)))
    return {
        "data": path.name,
        "embedder": "none" if embedder is None else embedder.name,
        "rows": [[name, len(each), *interval(each)] for name, each in found.items()],
    }


def tables(raw: Mapping[str, Any]) -> list[Grid]:
    """Return the regret of the simulation, and the board if it was run."""
    curves: Mapping[str, Sequence[Sequence[float]]] = raw["curves"]
    runs = len(next(iter(curves.values()))[0])
    rows = tuple(
        (name, f"{_mean_at(each, runs // 2):.1f}", f"{_mean_at(each, runs):.1f}")
        for name, each in curves.items()
    )
    head = ("lessons", f"regret after {runs // 2} runs", f"after {runs}")
    found = [Grid("Simulated use", 1, head, rows, f"Means over {len(SEEDS)} seeds.")]
    told = raw["board"]
    if told:
        measures = tuple(
            (name, str(n), f"{mean:.3f} [{low:.3f}, {high:.3f}]")
            for name, n, mean, low, high in told["rows"]
        )
        note = (
            f"{told['data']}; embedder: {told['embedder']}. Intervals: 95 %, whole families drawn."
        )
        found.append(Grid("Insights handed over", 1, ("measure", "n", "share"), measures, note))
    return found


def _mean_at(curves: Sequence[Sequence[float]], runs: int) -> float:
    return sum(curve[runs - 1] for curve in curves) / len(curves)


def charts(raw: Mapping[str, Any]) -> list[Chart]:
    """Return the regret over runs, each seed faintly."""
    curves: Mapping[str, Sequence[Sequence[float]]] = raw["curves"]
    series = {
        f"{name} #{number}": each
        for name, many in curves.items()
        for number, each in enumerate(many)
    }
    runs = len(next(iter(series.values())))
    title = "Successes lost against the best lessons"
    return [
        Chart("lessons", title, {"": series}, x=range(1, runs + 1), x_label="runs",
              y_label="successes lost")
    ]  # fmt: skip


BENCHMARK = Benchmark(
    "lessons",
    "whether lessons of earlier runs are handed over, and what telling their use is worth",
    LessonsOptions,
    measure,
    tables,
    charts,
    packages=("memoryspace", "numpy"),
)
