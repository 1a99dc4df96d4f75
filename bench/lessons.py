"""Whether lessons help: a board on runs of real agent work, and a simulation of their use.

    python bench/lessons.py board DATA.jsonl [--embedder none|best]
    python bench/lessons.py simulate [--runs 200] [--svg results/lessons.svg]

The board asks of every new task whether the insight that an earlier run held is handed over; no
model judges anything. The simulation knows what each lesson is worth: how often it helps. It counts
the successes lost against whoever always takes the best lesson (regret).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from memoryspace import MemoryStore
from memoryspace.embedding import best_embedder
from memoryspace.record import Origin
from memoryspace.service import (
    MemoryHit,
    ServiceSettings,
    StoredMemoryService,
    TaskMemoryService,
    ToolMemoryService,
)
from memoryspace.service.deriving.contract import Add, Decision, Job, Known
from memoryspace.service.memory import Draft, MemoryItem

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


async def simulate(runs: int, svg: Path | None) -> None:
    """Print and draw the regret with and without the uses told."""
    curves = {
        name: [await regrets(runs, seed, is_told=is_told) for seed in SEEDS]
        for name, is_told in (("uses told", True), ("uses not told", False))
    }
    for name, each in curves.items():
        half = sum(curve[runs // 2 - 1] for curve in each) / len(each)
        end = sum(curve[-1] for curve in each) / len(each)
        print(f"{name:14} regret after {runs // 2} runs {half:6.1f}, after {runs} {end:6.1f}")
    if svg is not None:
        draw(curves, svg)


def draw(curves: dict[str, list[list[float]]], svg: Path) -> None:
    """Draw the mean of each, and every seed faintly."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 4))
    for colour, (name, each) in zip(("tab:blue", "tab:orange"), curves.items(), strict=True):
        for curve in each:
            axes.plot(curve, color=colour, alpha=0.25, linewidth=0.8)
        mean = [sum(values) / len(values) for values in zip(*each, strict=True)]
        axes.plot(mean, color=colour, label=name)
    axes.set(xlabel="runs", ylabel="successes lost against the best lessons", ylim=(0, None))
    axes.legend()
    figure.tight_layout()
    figure.savefig(svg)


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    told = commands.add_parser("board")
    told.add_argument("data", type=Path)
    told.add_argument("--embedder", choices=("none", "best"), default="none")
    simulated = commands.add_parser("simulate")
    simulated.add_argument("--runs", type=int, default=200)
    simulated.add_argument("--svg", type=Path)
    args = parser.parse_args()
    if args.command == "simulate":
        asyncio.run(simulate(args.runs, args.svg))
        return
    embedder = best_embedder() if args.embedder == "best" else None
    print(f"{args.data.name}, embedder {embedder.name if embedder else 'none'}")
    rows = [json.loads(line) for line in args.data.read_text("utf-8").splitlines()]
    for name, values in asyncio.run(board(rows, ServiceSettings(embedder=embedder))).items():
        mean, low, high = interval(values)
        print(f"{name:28} n={len(values):<4} {mean:.3f}  [{low:.3f}, {high:.3f}]")


if __name__ == "__main__":
    main()
