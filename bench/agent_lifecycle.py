"""Python's collector under agents that come and go: which setting is worth it.

`.venv/bin/python bench/agent_lifecycle.py`. Each setting runs in processes of its own, in turns
with the others, beside the data of a server that holds many sessions. Plain agents are in no
reference cycle; cyclic ones have a hook that refers to its agent, so that only the collector frees
them. All times are CPU times, so that a busy machine does not count.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from side_by_side import environment, save

ROOT = Path(__file__).parent.parent
OUTPUT = ROOT / "results" / "agent_lifecycle.json"
ROUNDS = 5
AGENTS = 4_000
ALIVE = 50  # at a time
SAID = 20  # messages each
TASK = 100  # agents, after which a manual setting collects
SESSIONS = 2_000  # of the server, that live on
WORKLOADS = ("plain", "cyclic")


@dataclass(frozen=True)
class Setting:
    """How the collector is set, and whether it is also called by hand."""

    name: str
    threshold: tuple[int, int, int] | None = (700, 10, 10)
    freeze: bool = False
    by_hand: bool = False


SETTINGS = [
    Setting("default (700, 10, 10)"),
    Setting("lower (200, 5, 5)", (200, 5, 5)),
    Setting("much lower (50, 5, 5)", (50, 5, 5)),
    Setting("higher (10,000, 10, 10)", (10_000, 10, 10)),
    Setting("much higher (100,000, 10, 10)", (100_000, 10, 10)),
    Setting("frozen: default after gc.freeze()", freeze=True),
    Setting("default, and collect by hand after each 100 agents", by_hand=True),
    Setting("frozen, and collect by hand after each 100 agents", freeze=True, by_hand=True),
    Setting("off, and collect by hand after each 100 agents", None, by_hand=True),
    Setting("off", None),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--one", nargs=2, metavar=("SETTING", "WORKLOAD"), help="in this process")
    parser.add_argument("--plot", action="store_true", help="only draw what was saved")
    given = parser.parse_args()
    if given.one:
        print(json.dumps(asyncio.run(measured(SETTINGS[int(given.one[0])], given.one[1]))))
    elif given.plot:
        plot(json.loads(given.output.read_text()), given.output)
    else:
        compare(given.output, given.rounds)


def compare(output: Path, rounds: int) -> None:
    """Measure all settings in turns, and keep what came out."""
    runs: dict[str, list[dict[str, Any]]] = {}
    for _ in range(rounds):
        for workload in WORKLOADS:
            for number, setting in enumerate(SETTINGS):
                runs.setdefault(f"{workload}: {setting.name}", []).append(run(number, workload))
    rows = [summary(name, many) for name, many in runs.items()]
    document = {"environment": environment(["memoryspace"]), "rows": rows, "runs": runs}
    text = "\n".join(table(rows))
    print(text)
    save(output, document, text)
    plot(document, output)


def run(number: int, workload: str) -> dict[str, Any]:
    command = [sys.executable, __file__, "--one", str(number), workload]
    return dict(json.loads(subprocess.run(command, check=True, capture_output=True).stdout))


# -- one process -----------------------------------------------------------------------------------


async def measured(setting: Setting, workload: str) -> dict[str, Any]:
    """Let agents come and go under one setting."""
    make_and_use = worker(workload)
    server = await sessions()
    gc.collect()
    if setting.freeze:
        gc.freeze()
    if setting.threshold is None:
        gc.disable()
    else:
        gc.set_threshold(*setting.threshold)
    pauses = watched()
    resident = resident_kb()
    alive: deque[Any] = deque(maxlen=ALIVE)
    times = []
    started = before = time.process_time()
    for number in range(1, AGENTS + 1):
        alive.append(await make_and_use())
        if setting.by_hand and number % TASK == 0:
            gc.collect()
        now = time.process_time()
        times.append(now - before)
        before = now
    assert len(server) == SESSIONS
    return {
        "agents_per_cpu_second": AGENTS / (before - started),
        "peak_growth_mb": (peak_kb() - resident) / 1024,
        "collector_share": sum(pauses) / (before - started),
        "collections": len(pauses),
        "longest_pause_ms": max(pauses, default=0) * 1e3,
        "slowest_of_100_agents_ms": sorted(times)[int(AGENTS * 0.99)] * 1e3,
    }


def worker(workload: str) -> Callable[[], Any]:
    """Return what makes an agent and has it talk; cyclic ones refer to themselves."""
    from memoryspace.agent import AgentBase
    from memoryspace.memory import InMemoryMemory
    from memoryspace.message import Msg

    class Worker(AgentBase):
        def __init__(self) -> None:
            super().__init__()
            self.memory = InMemoryMemory()
            self.set_console_output_enabled(False)

        async def reply(self, msg: Msg) -> Msg:
            await self.memory.add(msg)
            text = f"an answer to {msg.content}, which is somewhat longer than the question was"
            said = Msg("Ann", [{"type": "text", "text": text}], "assistant")
            await self.memory.add(said)
            await self.memory.get_memory()
            return said

    async def make_and_use() -> Any:
        agent = Worker()
        if workload == "cyclic":
            agent.register_instance_hook("pre_reply", "me", lambda _, asked: agent.id and None)
        for number in range(SAID // 2):
            await agent(Msg("user", f"question number {number}", "user"))
        return agent

    return make_and_use


async def sessions() -> list[Any]:
    """Return the memories of many other sessions, which are there all the time."""
    from memoryspace.memory import InMemoryMemory
    from memoryspace.message import Msg

    memories = [InMemoryMemory() for _ in range(SESSIONS)]
    for memory in memories:
        said = [Msg("user", f"what was said, part {part}", "user") for part in range(SAID)]
        await memory.add(said)
        await memory.get_memory()
    return memories


def watched() -> list[float]:
    """Return a list that every collection adds its duration to."""
    pauses: list[float] = []
    began = [0.0]

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            began[0] = time.process_time()
        else:
            pauses.append(time.process_time() - began[0])

    gc.callbacks.append(note)
    return pauses


def resident_kb() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() // 1024


def peak_kb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


# -- report ----------------------------------------------------------------------------------------


def summary(name: str, runs: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "case": name,
        **{key: statistics.median(run[key] for run in runs) for key in runs[0]},
        "spread": spread([run["agents_per_cpu_second"] for run in runs]),
    }


def spread(values: list[float]) -> float:
    """How far the runs of one setting lie apart, as a share of their median."""
    return (max(values) - min(values)) / statistics.median(values)


def table(rows: list[dict[str, Any]]) -> list[str]:
    lines = [
        f"{AGENTS:,} agents of {SAID} messages each come and go, {ALIVE} of them alive at a time, "
        f"beside {SESSIONS:,} sessions of {SAID} messages that stay. Medians; times are CPU times. "
        f"Python {platform.python_version()}.",
        "",
        "| agents: collector | agents per second | to default | time in the collector "
        "| collections | longest pause | slowest of 100 agents | peak growth |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        default = next(each for each in rows if each["case"] == default_of(row))
        ratio = row["agents_per_cpu_second"] / default["agents_per_cpu_second"]
        lines.append(
            f"| {row['case']} | {row['agents_per_cpu_second']:,.0f} (±{row['spread'] / 2:.0%}) "
            f"| {ratio:.2f}× | {row['collector_share']:.1%} | {row['collections']:,.0f} "
            f"| {row['longest_pause_ms']:.1f} ms | {row['slowest_of_100_agents_ms']:.1f} ms "
            f"| {row['peak_growth_mb']:.1f} MB |"
        )
    return lines


def default_of(row: dict[str, Any]) -> str:
    return f"{row['case'].partition(':')[0]}: {SETTINGS[0].name}"


def plot(document: dict[str, Any], output: Path) -> None:
    """Draw speed against memory and pauses, where matplotlib is installed."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        print("no picture: matplotlib is not installed", file=sys.stderr)
        return
    matplotlib.rcParams["svg.fonttype"] = "none"  # text stays text
    rows = document["rows"]
    figure = Figure(figsize=(10, 8), layout="constrained")
    columns = [
        ("agents per CPU second", "agents_per_cpu_second"),
        ("longest pause, ms", "longest_pause_ms"),
        ("peak growth, MB", "peak_growth_mb"),
    ]
    for axes, (title, key) in zip(figure.subplots(1, 3, sharey=True), columns, strict=True):
        colours = ["tab:blue" if row["case"].startswith("plain") else "tab:orange" for row in rows]
        axes.barh([row["case"] for row in rows], [row[key] for row in rows], color=colours)
        axes.set_title(title)
    axes.invert_yaxis()  # of all three: the first setting stands above
    figure.savefig(output.with_suffix(".svg"), metadata={"Date": None})


if __name__ == "__main__":
    main()
