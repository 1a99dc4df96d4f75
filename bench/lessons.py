"""Whether telling the uses of lessons pays, and what deriving them costs.

    python bench/lessons.py simulate [--runs 200] [--svg results/lessons.svg]
    python bench/lessons.py speed [--messages 200]

The simulation knows what each lesson is worth: how often it helps. It counts the successes lost
against whoever always takes the best lesson (regret), and says what pruning keeps. The speed is in
milliseconds of CPU for deriving from one more run, without a model, as more lessons are known.
``memoryspace bench tasks`` measures whether the right lessons are handed over.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from memoryspace import MemoryStore
from memoryspace.record import Origin
from memoryspace.service import ServiceSettings, StoredMemoryService
from memoryspace.service.deriving.contract import Add, Decision, Job, Known
from memoryspace.service.deriving.task import TaskDeriver
from memoryspace.service.values.memory import Draft, MemoryItem

AGENT = "agent"
TASKS, CHOICES = 10, 3  # of the simulation: kinds of tasks, and lessons for each
SEEDS = range(5)
REPEATED = 9  # runs of which the median time is told


# -- the simulation --------------------------------------------------------------------------------


Counts = tuple[int, int, int, int]


class Told:
    """A deriver whose lessons are what it is told."""

    name, kinds, is_quick = "told lessons", ("experience",), True

    async def derive(self, job: Job, known: Known) -> list[Decision]:
        """Return each message of a job as a lesson."""
        return [Add(_lesson(each)) for each in job.memories]


def _lesson(memory: MemoryItem) -> Draft:
    origin = Origin(Told.name, (memory.id,))
    return Draft(value=memory.text, text=memory.text, kind="experience", origin=origin)


async def regrets(runs: int, seed: int, *, is_told: bool) -> tuple[list[float], Counts]:
    """Return the successes lost after each run, and what pruning leaves in the end.

    Lessons' uses are told, or are not.
    """
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
        await service.prune(AGENT)
        page = await service.page(AGENT, limit=len(worth), filters={"kind": "experience"})
        return curve, counted(worth, [texts[each.text] for each in page.memories])


def counted(worth: Mapping[tuple[int, int], float], kept: Sequence[tuple[int, int]]) -> Counts:
    """Return how many lessons there are that help mostly, and that do not, and are left of each."""
    good = [each for each in worth if worth[each] >= 0.5]
    left = sum(each in kept for each in good)
    return len(good), left, len(worth) - len(good), len(kept) - left


async def simulate(runs: int, svg: Path | None) -> None:
    """Print and draw the regret with and without the uses told."""
    found = {
        name: [await regrets(runs, seed, is_told=is_told) for seed in SEEDS]
        for name, is_told in (("uses told", True), ("uses not told", False))
    }
    curves = {name: [curve for curve, _ in each] for name, each in found.items()}
    for name, each in curves.items():
        half = sum(curve[runs // 2 - 1] for curve in each) / len(each)
        end = sum(curve[-1] for curve in each) / len(each)
        print(f"{name:14} regret after {runs // 2} runs {half:6.1f}, after {runs} {end:6.1f}")
    good, kept, bad, left = (
        sum(part) for part in zip(*(each for _, each in found["uses told"]), strict=True)
    )
    print(f"pruning keeps {kept} of {good} lessons that mostly help, {left} of {bad} others")
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


# -- the speed -------------------------------------------------------------------------------------


class Timed(TaskDeriver):
    """A deriver that notes the seconds of CPU of each job."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []

    async def derive(self, job: Job, known: Known) -> list[Decision]:
        """Derive, and note how long that took."""
        began = time.process_time()
        decisions = await super().derive(job, known)
        self.seconds.append(time.process_time() - began)
        return decisions


def attempt(rng: random.Random, words: Sequence[str], messages: int) -> list[dict[str, Any]]:
    """Return a run of so many messages about its own words; every fifth call fails."""

    def some(count: int) -> str:
        return " ".join(rng.choices(words, k=count))

    said: list[dict[str, Any]] = [{"role": "user", "content": f"Please {some(12)}"}]
    for number in range(messages // 2 - 1):
        arguments = json.dumps({"path": some(1), "query": some(6), "limit": number})
        function = {"name": f"tool_{words[number % 7]}", "arguments": arguments}
        call = {"id": f"c{number}", "type": "function", "function": function}
        answer = f"Error: {some(8)}" if number % 5 == 0 else some(80)
        said.append({"role": "assistant", "content": None, "tool_calls": [call]})
        said.append({"role": "tool", "tool_call_id": f"c{number}", "content": answer})
    return [*said, {"role": "assistant", "content": some(20)}]


async def cost(known: int, messages: int) -> tuple[float, int]:
    """Return the milliseconds of CPU of deriving beside so many lessons, and how many there are."""
    rng, timed = random.Random(1), Timed()
    settings = ServiceSettings(embedder=None)
    async with StoredMemoryService(MemoryStore(), derivers=[timed], settings=settings) as service:
        for number in range(known):
            words = [f"w{number}x{at}" for at in range(60)]
            for score in (0.0, 1.0):
                run = attempt(rng, words, 30)
                await service.add_trajectory(AGENT, run, score=score, task=" ".join(words[:12]))
        there = await service.count(AGENT, {"kind": "experience"})
        timed.seconds.clear()
        for number in range(REPEATED):
            words = [f"new{number}x{at}" for at in range(60)]
            await service.add_trajectory(AGENT, attempt(rng, words, messages), score=number % 2)
    return statistics.median(timed.seconds) * 1000, there


def speed(messages: int) -> None:
    """Print what deriving costs as more lessons are known."""
    for known in (0, 20, 200):
        spent, there = asyncio.run(cost(known, messages))
        print(f"beside {there:4} lessons: {spent:6.1f} ms of CPU for a run of {messages} messages")


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    simulated = commands.add_parser("simulate")
    simulated.add_argument("--runs", type=int, default=200)
    simulated.add_argument("--svg", type=Path)
    commands.add_parser("speed").add_argument("--messages", type=int, default=200)
    args = parser.parse_args()
    if args.command == "speed":
        speed(args.messages)
    else:
        asyncio.run(simulate(args.runs, args.svg))


if __name__ == "__main__":
    main()
