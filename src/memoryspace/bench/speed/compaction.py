"""Compaction compared with AgentScope 1.0.16's truncation: ``make bench-compaction DATA=FOLDER``.

Speed: both sides bring the same long history under the same budget, in turns; times are CPU times.
Quality, with a folder of data: recorded agent runs, step by step, and which needed facts are still
there (``memoryspace.evaluation.needs`` defines how that is judged without a model).
"""

from __future__ import annotations

import asyncio
import statistics
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

warnings.filterwarnings("ignore")  # of AgentScope's own dependencies

import agentscope.formatter as their_formatter  # noqa: E402  # after the warnings
import agentscope.message as their_message  # noqa: E402
import agentscope.token as their_token  # noqa: E402

from ... import formatter as our_formatter  # noqa: E402
from ... import token as our_token  # noqa: E402
from ...context import Compactor, Limits, Meter  # noqa: E402
from ...evaluation.keeping import KEEPERS, Judged, Keeper, View, judge  # noqa: E402
from ...evaluation.trajectories import Trajectory, joined, load_trajectories  # noqa: E402
from ...message import Msg  # noqa: E402
from ..harness.benchmark import Benchmark, Grid, Raw, Run, compared_grid  # noqa: E402
from ..harness.options import Flags, option  # noqa: E402
from ..harness.timing import compared, duration  # noqa: E402

SIZES = (500, 1000, 2000, 4000, 8000)
BUDGETS = (1000, 2000, 4000)
DEVELOPMENT = "agent runs (development)"
OLD = 10  # messages after which a fact counts as old


def history(size: int) -> list[dict[str, Any]]:
    """Return a tool-heavy conversation as message dicts, which both packages read."""
    found: list[dict[str, Any]] = []
    for turn in range(size // 4):
        id = f"call-{turn}"
        call = {"type": "tool_use", "id": id, "name": "search", "input": {"query": f"part {turn}"}}
        output = f"Result {turn}: " + "backend 12 holds seven boxes of screws. " * 12
        result = {"type": "tool_result", "id": id, "name": "search", "output": output}
        said: list[tuple[str, str, Any]] = [
            ("Ann", "user", f"Please find part number {turn} and tell me where it is kept."),
            ("Bob", "assistant", [call]),
            ("system", "system", [result]),
            ("Bob", "assistant", f"Part {turn} is on backend 12, beside the seven boxes."),
        ]
        found += [{"name": name, "role": role, "content": content} for name, role, content in said]
    return found


# -- speed ---------------------------------------------------------------------------------------


async def theirs(messages: list[Any], budget: int) -> float:
    formatter = their_formatter.OpenAIChatFormatter(
        token_counter=their_token.CharTokenCounter(), max_tokens=budget
    )
    start = time.process_time()
    await formatter.format(messages)
    return time.process_time() - start


async def our_compaction(messages: list[Msg], budget: int) -> float:
    """Time ours with the same counter on the same format; no token count is cached."""
    compactor = _compactor(budget)
    start = time.process_time()
    await compactor.compact(messages)
    return time.process_time() - start


async def our_running_compaction(messages: list[Msg], budget: int) -> float:
    """Time ours as in a running agent: all but the newest messages are already counted."""
    compactor = _compactor(budget)
    await compactor.meter.costs(messages[:-4])
    start = time.process_time()
    await compactor.compact(messages)
    return time.process_time() - start


async def our_next_prompt(messages: list[Msg], budget: int) -> float:
    """Time the prompt of the step after a compaction; theirs truncates everything again."""
    compactor = _compactor(budget)
    pages = (await compactor.compact(messages[:-4])).pages
    start = time.process_time()
    await compactor.compact(messages, pages=pages)
    return time.process_time() - start


def _compactor(budget: int) -> Compactor:
    meter = Meter(our_token.CharTokenCounter(), our_formatter.OpenAIChatFormatter())
    return Compactor(Limits(budget=budget), meter=meter)


async def our_truncation(messages: list[Msg], budget: int) -> float:
    formatter = our_formatter.OpenAIChatFormatter(
        token_counter=our_token.CharTokenCounter(), max_tokens=budget
    )
    start = time.process_time()
    await formatter.format(messages)
    return time.process_time() - start


CASES = {
    "compaction, nothing measured before": our_compaction,
    "compaction in a running agent": our_running_compaction,
    "the next prompt after it": our_next_prompt,
    "truncation by the formatter": our_truncation,
}


async def speed(rounds: int, size: int = 2000, share: float = 0.1) -> list[dict[str, Any]]:
    budget = await _budget(size, share)
    rows = []
    for name, ours in CASES.items():
        times: dict[str, list[float]] = {"agentscope": [], "memoryspace": []}
        for _ in range(rounds):
            their_messages = [their_message.Msg.from_dict(each) for each in history(size)]
            times["agentscope"].append(await theirs(their_messages, budget))
            times["memoryspace"].append(await ours(_ours(size), budget))
        rows.append(
            {"case": name, "messages": size, **compared(times, "agentscope", "memoryspace")}
        )
    return rows


async def growth(rounds: int) -> list[dict[str, Any]]:
    """Return how our cost grows with the history, with a tenth of it as the budget."""
    rows = []
    for size in SIZES:
        budget = await _budget(size, 0.1)
        times = [await our_compaction(_ours(size), budget) for _ in range(rounds)]
        rows.append({"messages": size, "seconds": times, "best": min(times)})
    return rows


def _ours(size: int) -> list[Msg]:
    return [Msg.from_dict(each) for each in history(size)]


async def _budget(size: int, share: float) -> int:
    formatted = await our_formatter.OpenAIChatFormatter().format(_ours(size))
    return int(share * await our_token.CharTokenCounter().count(formatted))


# -- quality -------------------------------------------------------------------------------------


class _Estimated(their_token.TokenCounterBase):  # type: ignore[misc]  # untyped where absent
    """Our estimate behind their interface, so that all have the same budget."""

    async def count(self, messages: list[dict[str, Any]], **_: Any) -> int:
        return await our_token.EstimatedTokenCounter().count(messages)


class AgentScopeTruncation(Keeper):
    """Their formatter with a limit."""

    async def view(self, history: Sequence[Msg]) -> View:
        """Return the text of their prompt."""
        formatter = their_formatter.OpenAIChatFormatter(
            token_counter=_Estimated(), max_tokens=self.budget
        )
        messages = [their_message.Msg.from_dict(msg.to_dict()) for msg in history]
        try:
            formatted = await formatter.format(messages)
        except ValueError:  # nothing fits, or a call lacks its result: no prompt at all
            return View("", 0)
        text = "\n".join(our_token.base.texts_in(formatted))
        return View(text, await our_token.EstimatedTokenCounter().count(formatted))


def sets(data_path: Path) -> dict[str, list[Trajectory]]:
    """Yield real runs, on which the summary's rules were chosen, and held-out ones."""
    dialogues = load_trajectories(data_path / "sgd_dialogues.jsonl.gz")
    return {
        DEVELOPMENT: load_trajectories(data_path / "agent_trajectories.jsonl.gz"),
        "SGD dialogues, twelve in a row (held out)": joined(dialogues, by=12, most=40),
    }


async def quality(data_path: Path, say: Callable[[str], None]) -> list[dict[str, Any]]:
    rows = []
    for data, runs in sets(data_path).items():
        keepers: dict[str, type[Keeper]] = dict(KEEPERS)
        if data == DEVELOPMENT:  # theirs takes hours for the long ones
            keepers = {"AgentScope truncation": AgentScopeTruncation, **KEEPERS}
        for budget in BUDGETS:
            for name, keeper in keepers.items():
                say(f"{data}, budget {budget}, {name}")
                facts = [fact for run in runs for fact in await judge(run, keeper(budget))]
                if facts:
                    rows.append({"data": data, "budget": budget, "keeper": name, **_shares(facts)})
    return rows


def _shares(facts: list[Judged]) -> dict[str, float]:
    old = [fact for fact in facts if fact.age > OLD]
    steps = {(fact.run, fact.at): fact.tokens for fact in facts}
    refused = {(fact.run, fact.at) for fact in facts if fact.is_refused}
    return {
        "steps": len(steps),
        "facts": len(facts),
        "old_facts": len(old),
        "tokens": statistics.mean(steps.values()),
        "longest": max(steps.values()),
        "over": len(refused) / len(steps),
        "resident": _share([fact.is_resident for fact in facts]),
        "named": _share([fact.is_named for fact in facts]),
        "stored": _share([fact.is_stored for fact in facts]),
        "old_resident": _share([fact.is_resident for fact in old]),
        "old_named": _share([fact.is_named for fact in old]),
        "old_stored": _share([fact.is_stored for fact in old]),
    }


def _share(found: list[bool]) -> float:
    return sum(found) / len(found) if found else float("nan")


# -- report --------------------------------------------------------------------------------------


def tables(raw: Mapping[str, Any]) -> list[Grid]:
    """Return the times, how they grow, and what each strategy retains."""
    title = "2,000 messages to a tenth of their size"
    grown = tuple(
        (f"{row['messages']:,}", duration(row["best"]), duration(row["best"] / row["messages"]))
        for row in raw["growth"]
    )
    return [
        compared_grid(title, raw["speed"], "agentscope", "memoryspace"),
        Grid("By the length of the history", 1, ("messages", "memoryspace", "a message"), grown),
        *(_quality_grid(data, raw["quality"]) for data in _data_sets(raw["quality"])),
    ]


def _data_sets(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(str(row["data"]) for row in rows))


def _quality_grid(data: str, rows: Sequence[Mapping[str, Any]]) -> Grid:
    head = (
        "budget",
        "way",
        "steps",
        "facts (old)",
        "tokens shown, mean (most)",
        "over budget",
        "in the prompt",
        "or behind a handle in it",
        "or found by a search",
    )
    note = (
        "Facts that a step needed, and where they were before it (all / those last said more than "
        f"{OLD} messages before). A prompt over the budget counts as empty."
    )
    chosen = [row for row in rows if row["data"] == data]
    return Grid(f"What is still known: {data}", 2, head, tuple(map(_quality_row, chosen)), note)


def _quality_row(row: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        f"{row['budget']:,}",
        row["keeper"],
        str(row["steps"]),
        f"{row['facts']} ({row['old_facts']})",
        f"{row['tokens']:.0f} ({row['longest']:,})",
        f"{row['over']:.2f}",
        *(f"{row[n]:.3f} / {row['old_' + n]:.3f}" for n in ("resident", "named", "stored")),
    )


@dataclass(frozen=True)
class CompactionSpeedOptions(Flags):
    """The number of rounds."""

    rounds: int = option(3, "rounds per case", quick=1)


def measure(options: CompactionSpeedOptions, run: Run) -> Raw:
    """Time both sides; with data, judge what each strategy retains."""
    return asyncio.run(_measured(options, run))


async def _measured(options: CompactionSpeedOptions, run: Run) -> Raw:
    return {
        "speed": await speed(options.rounds),
        "growth": await growth(options.rounds),
        "quality": [] if run.data_path is None else await quality(run.data_path, run.say),
    }


BENCHMARK = Benchmark(
    "compaction-speed",
    "compaction beside AgentScope 1.0.16's truncation",
    CompactionSpeedOptions,
    measure,
    tables,
    notes="CPU times. Ratios are theirs over ours.",
    packages=("memoryspace", "agentscope", "msgspec"),
)
