"""Facts retained by each way to keep a context within a budget, on recorded agent runs.

The arguments of a tool call show what the step had to know (``evaluation.needs``). Before each step
whose history is over the budget, every strategy returns what the model would see. Is the fact
there, behind a handle named there, or found by a search of the memory? A prompt that is itself over
the budget would be refused, so nothing in it counts.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...evaluation.keeping import KEEPERS, Judged, judge
from ...evaluation.trajectories import Trajectory, load_trajectories
from ..harness.data import Data
from ..harness.experiment import Cell, CellResult, Claim, Experiment, Plot, Table, integer
from ..harness.findings import Findings, NotMeasured, part_name
from ..harness.intervals import share, share_interval
from ..harness.options import Options, option

FILE = "agent_trajectories.jsonl.gz"
OLD = 10  # messages after which a fact counts as old
ALL = 1 << 30  # runs

WAYS: dict[str, Callable[[Judged], bool]] = {
    "resident": lambda fact: fact.is_resident,
    "named": lambda fact: fact.is_named,
    "found": lambda fact: fact.is_stored,
}
AGES = ((5, "1 to 5"), (10, "6 to 10"), (20, "11 to 20"), (50, "21 to 50"), (ALL, "over 50"))


@dataclass(frozen=True)
class CompactionOptions(Options):
    """The strategies and their budgets."""

    seeds: tuple[int, ...] = option((1,), "unused: nothing here is random")
    keepers: tuple[str, ...] = option(tuple(KEEPERS), "strategies", choices=tuple(KEEPERS))
    budgets: tuple[int, ...] = option((1000, 2000, 4000, 8000), "tokens", quick=(1000, 2000))
    runs: int = option(ALL, "maximum number of runs", quick=4)


def cells(options: CompactionOptions, data: Data) -> list[Cell]:
    """Return a cell for each strategy and budget."""
    return [
        {"data": data.label, "runs": options.runs, "keeper": keeper, "budget": budget}
        for budget in options.budgets
        for keeper in options.keepers
    ]


def run(cell: Cell, data: Data) -> CellResult:
    """Replay all runs, step by step."""
    runs = data.once("runs", lambda: load_trajectories(data.path_of(FILE)))
    started = time.perf_counter()
    facts = asyncio.run(_judged(cell, runs[: integer(cell, "runs")], data))
    return _result(facts, time.perf_counter() - started)


async def _judged(cell: Cell, runs: Sequence[Trajectory], data: Data) -> list[list[Judged]]:
    found = []
    for number, each in enumerate(runs):
        keeper = KEEPERS[str(cell["keeper"])](integer(cell, "budget"))
        found.append(await judge(each, keeper))
        data.tick(number + 1, len(runs))
    return [facts for facts in found if facts]


def _result(runs: Sequence[Sequence[Judged]], seconds: float) -> CellResult:
    """Return shares of the facts, with intervals over runs."""
    facts = [fact for run in runs for fact in run]
    steps = {(fact.run, fact.at): fact.tokens for fact in facts}
    figures: dict[str, float] = {"runs": len(runs), "steps": len(steps), "n": len(facts)}
    if not facts:
        return CellResult(figures)
    figures |= {"tokens": statistics.fmean(steps.values()), "longest": max(steps.values())}
    old = [[fact for fact in run if fact.age > OLD] for run in runs]
    figures["n_old"] = sum(map(len, old))
    intervals = {}
    for name, has in WAYS.items():
        for title, chosen in ((name, runs), (f"old_{name}", old)):
            counts = [(sum(map(has, run)), len(run)) for run in chosen if run]
            if counts:
                figures[title] = share(counts)
                intervals[title] = share_interval(counts)
        for age in _by_age(facts):
            parts = [_by_age(run).get(age, []) for run in runs]
            counts = [(sum(map(has, part)), len(part)) for part in parts if part]
            figures[part_name(name, age)] = share(counts)
            intervals[part_name(name, age)] = share_interval(counts)
    for age, part in _by_age(facts).items():
        figures[part_name("n", age)] = len(part)
    timings = {"ms_a_step": seconds / len(steps) * 1e3}
    series = {"tokens shown": sorted(steps.values())}
    return CellResult(figures, timings, series, intervals=intervals)


def _by_age(facts: Sequence[Judged]) -> dict[str, list[Judged]]:
    found: dict[str, list[Judged]] = {}
    for bound, name in AGES:
        before = [other for other, _ in AGES if other < bound]
        part = [fact for fact in facts if max(before, default=0) < fact.age <= bound]
        if part:
            found[f"{name} messages"] = part
    return found


def _nothing_is_lost(found: Findings) -> bool:
    groups = found.where({"keeper": OURS})
    if not groups or "found" not in groups[0].figures:
        raise NotMeasured("memoryspace")
    return all(group.figures["found"].mean == 1 for group in groups)


def _ahead(figure: str) -> Callable[[Findings], bool]:
    """Return whether ours has the highest figure at every budget."""

    def holds(found: Findings) -> bool:
        for budget in dict.fromkeys(group.cell["budget"] for group in found.groups):
            others = [
                group.figures[figure].mean
                for group in found.where({"budget": budget})
                if group.cell["keeper"] != OURS and figure in group.figures
            ]
            if not others:
                raise NotMeasured("others")
            if found.mean(figure, {"keeper": OURS, "budget": budget}) <= max(others):
                return False
        return True

    return holds


def _both(found: Findings) -> str:
    """Return how many old facts are in the prompt, and how many are within reach."""
    groups = [group for group in found.where({"keeper": OURS}) if "old_named" in group.figures]
    return "; ".join(
        f"{group.cell['budget']:,} tokens: {group.figures['old_resident'].mean:.3f} in the prompt, "
        f"{group.figures['old_named'].mean:.3f} within reach"
        for group in groups
    )


OURS = "memoryspace"
_WHERE = {"resident": "in the prompt", "named": "within reach of the prompt"}
_REACH = "Within reach: in the prompt, or behind a handle that the prompt names."

EXPERIMENT = Experiment(
    "compaction",
    "what each way to keep a context within a budget still knows of an agent's run",
    CompactionOptions,
    cells,
    run,
    files=lambda options: (FILE,),
    tables=(
        Table(
            "Facts that a step needed, and where they were before it",
            columns=("runs", "steps", "n", "tokens", "longest", "resident", "named", "found",
                     "ms_a_step"),
            rows=("budget", "keeper"),
            note="resident: in the prompt. named: or behind a handle that the prompt names. found: "
            "or in what a search goes through. Intervals: bootstrap over whole runs.",
        ),
        Table(
            f"Facts last said more than {OLD} messages before",
            columns=("n_old", "old_resident", "old_named", "old_found"),
            rows=("budget", "keeper"),
        ),
    ),
    plots=(
        Plot("compaction-facts", "Facts that a step needed: in the prompt, and within reach",
             "bars", "resident", "budget", "keeper", beside=_WHERE, x_label="budget (tokens)",
             y_label="share of the facts", caption=_REACH),
        Plot("compaction-old-facts", f"Facts last said more than {OLD} messages before", "bars",
             "old_resident", "budget", "keeper", x_label="budget (tokens)",
             beside={f"old_{name}": title for name, title in _WHERE.items()},
             y_label="share of the facts", caption=_REACH),
        *(
            Plot(f"compaction-ages-{name}", f"Facts by age, {title}", "bars", name, "age", "keeper",
                 facet="budget", parts="age", x_label="messages since it was said",
                 y_label="share of the facts")
            for name, title in _WHERE.items()
        ),
        Plot("compaction-tokens", "Tokens shown before a step", "cdf", "tokens shown",
             group="keeper", facet="budget", x_label="tokens"),
    ),
    claims=(
        Claim("of what leaves the prompt, everything is found by a search", _nothing_is_lost),
        Claim("at each budget, more old facts are in the prompt itself than with any other way",
              _ahead("old_resident")),
        Claim("at each budget, more old facts are in the prompt or behind a handle that it names",
              _ahead("old_named"), _both),
    ),
    notes=(
        "Judged without a model: a fact that was not copied word for word is not seen, so this is "
        "a lower bound of what was needed, the same for every way."
    ),
)  # fmt: skip
