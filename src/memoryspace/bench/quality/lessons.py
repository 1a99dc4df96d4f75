"""The value of reporting lesson uses, and the cost of deriving lessons.

The simulation knows how often each lesson helps. It counts the successes lost against always taking
the best lesson (regret), and what pruning leaves. The cost is in milliseconds of CPU for deriving
from one more run, without a model, as the number of known lessons grows. ``memoryspace bench
tasks`` measures whether the right lessons are returned.
"""

from __future__ import annotations

import asyncio
import json
import random
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...record import Origin
from ...service import ServiceSettings, StoredMemoryService
from ...service.deriving.contract import Add, Decision, Job, Known
from ...service.deriving.task import TaskDeriver
from ...service.values.memory import Draft, MemoryItem
from ...store import MemoryStore
from ..harness.benchmark import Benchmark, Chart, Grid, Raw, Run
from ..harness.options import Flags, option

AGENT = "agent"
TASKS, CHOICES = 10, 3  # of the simulation: kinds of tasks, and lessons for each
SEEDS = range(5)
REPEATED = 9  # runs whose median time is reported
KNOWN = (0, 20, 200)  # lessons that exist already


# -- the simulation --------------------------------------------------------------------------------


Counts = tuple[int, int, int, int]


class GivenLessons:
    """A deriver that returns given lessons."""

    name, kinds, is_quick = "told lessons", ("experience",), True

    async def derive(self, job: Job, known: Known) -> list[Decision]:
        """Return each message of a job as a lesson."""
        return [Add(_lesson(each)) for each in job.memories]


def _lesson(memory: MemoryItem) -> Draft:
    origin = Origin(GivenLessons.name, (memory.id,))
    return Draft(value=memory.text, text=memory.text, kind="experience", origin=origin)


async def regrets(runs: int, seed: int, *, is_told: bool) -> tuple[list[float], Counts]:
    """Return the successes lost after each run, and what pruning leaves in the end.

    Uses of lessons are either reported or not.
    """
    rng = random.Random(seed)
    worth = {(task, n): rng.random() for task in range(TASKS) for n in range(CHOICES)}
    store, settings = MemoryStore(), ServiceSettings(embedder=None)
    lost, curve = 0.0, []
    async with StoredMemoryService(store, derivers=[GivenLessons()], settings=settings) as service:
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
    """Return how many helpful and unhelpful lessons there were, and how many of each are left."""
    good = [each for each in worth if worth[each] >= 0.5]
    left = sum(each in kept for each in good)
    return len(good), left, len(worth) - len(good), len(kept) - left


# -- the speed -------------------------------------------------------------------------------------


class Timed(TaskDeriver):
    """A deriver that records the CPU seconds of each job."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []

    async def derive(self, job: Job, known: Known) -> list[Decision]:
        """Derive, and record how long it took."""
        began = time.process_time()
        decisions = await super().derive(job, known)
        self.seconds.append(time.process_time() - began)
        return decisions


def attempt(rng: random.Random, words: Sequence[str], messages: int) -> list[dict[str, Any]]:
    """Return a run of this many messages with its own words; every fifth call fails."""

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
    """Return the CPU milliseconds of deriving among this many lessons, and how many there are."""
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


# -- the benchmark ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class LessonsOptions(Flags):
    """The length of the simulation, and of a run to derive from."""

    runs: int = option(200, "runs of the simulation", quick=40)
    messages: int = option(200, "messages of a run to derive from", quick=30)


def measure(options: LessonsOptions, run: Run) -> Raw:
    """Simulate the use of lessons, then derive among more and more of them."""
    run.say("simulation")
    found = {
        name: [asyncio.run(regrets(options.runs, seed, is_told=is_told)) for seed in SEEDS]
        for name, is_told in (("uses told", True), ("uses not told", False))
    }
    run.say("deriving")
    known = KNOWN[:1] if run.quick else KNOWN
    return {
        "curves": {name: [curve for curve, _ in each] for name, each in found.items()},
        "pruning": [counts for _, counts in found["uses told"]],
        "messages": options.messages,
        "speed": [asyncio.run(cost(each, options.messages)) for each in known],
    }


def tables(raw: Mapping[str, Any]) -> list[Grid]:
    """Return the regret, what pruning keeps, and the cost of deriving."""
    return [_regret_grid(raw), _pruning_grid(raw), _speed_grid(raw)]


def _regret_grid(raw: Mapping[str, Any]) -> Grid:
    curves: Mapping[str, Sequence[Sequence[float]]] = raw["curves"]
    runs = len(next(iter(curves.values()))[0])
    rows = tuple(
        (name, f"{_mean_at(each, runs // 2):.1f}", f"{_mean_at(each, runs):.1f}")
        for name, each in curves.items()
    )
    head = ("lessons", f"regret after {runs // 2} runs", f"after {runs}")
    return Grid("Simulated use", 1, head, rows, f"Means over {len(SEEDS)} seeds.")


def _pruning_grid(raw: Mapping[str, Any]) -> Grid:
    good, kept, bad, left = (sum(part) for part in zip(*raw["pruning"], strict=True))
    rows = (("help more often than not", str(good), str(kept)), ("others", str(bad), str(left)))
    return Grid("Lessons after pruning", 1, ("lessons", "before", "kept"), rows, "All seeds.")


def _speed_grid(raw: Mapping[str, Any]) -> Grid:
    rows = tuple((str(there), f"{spent:.1f} ms") for spent, there in raw["speed"])
    note = f"CPU of deriving from a run of {raw['messages']} messages; median of {REPEATED}."
    return Grid("Deriving", 1, ("lessons known", "CPU"), rows, note)


def _mean_at(curves: Sequence[Sequence[float]], runs: int) -> float:
    return sum(curve[runs - 1] for curve in curves) / len(curves)


def charts(raw: Mapping[str, Any]) -> list[Chart]:
    """Return the regret over runs, each seed as a faint line."""
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
    "what telling the uses of lessons is worth, and what deriving lessons costs",
    LessonsOptions,
    measure,
    tables,
    charts,
    packages=("memoryspace", "numpy"),
)
