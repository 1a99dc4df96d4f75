"""Settings of Python's garbage collector for agents that come and go.

Each setting runs in its own processes, in turns with the others, next to the data of a server that
holds many sessions. Plain agents have no reference cycles; cyclic ones have a hook that refers to
its agent, so only the collector frees them. All times are CPU times, so a busy machine does not
distort them.
"""

from __future__ import annotations

import asyncio
import gc
import json
import resource
import statistics
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..harness.benchmark import Benchmark, Chart, Grid, Raw, Run
from ..harness.measuring import resident_bytes
from ..harness.options import Flags, option

AGENTS = 4_000
ALIVE = 50  # at a time
SAID = 20  # messages each
TASK = 100  # agents after which a manual setting collects
SESSIONS = 2_000  # of the server; they stay alive
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


@dataclass(frozen=True)
class LifecycleOptions(Flags):
    """The number of runs and agents."""

    rounds: int = option(5, "rounds per setting", quick=1)


def measure(options: LifecycleOptions, run: Run) -> Raw:
    """Measure all settings in turns."""
    runs: dict[str, list[dict[str, Any]]] = {}
    for number in range(options.rounds):
        run.say(f"round {number + 1} of {options.rounds}")
        for workload in WORKLOADS:
            for place, setting in enumerate(SETTINGS):
                runs.setdefault(f"{workload}: {setting.name}", []).append(_apart(place, workload))
    return {"rows": [summary(name, many) for name, many in runs.items()], "runs": runs}


def _apart(number: int, workload: str) -> dict[str, Any]:
    command = [sys.executable, "-m", __name__, str(number), workload]
    return dict(json.loads(subprocess.run(command, check=True, capture_output=True).stdout))


# -- one process -----------------------------------------------------------------------------------


async def measured(setting: Setting, workload: str) -> dict[str, Any]:
    """Create and drop agents under one setting."""
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
    resident = resident_bytes() // 1024
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
    """Return a function that creates an agent and lets it talk; cyclic ones refer to themselves."""
    from ...agent import AgentBase
    from ...memory import InMemoryMemory
    from ...message import Msg

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
    """Return the memories of many other sessions, which stay alive throughout."""
    from ...memory import InMemoryMemory
    from ...message import Msg

    memories = [InMemoryMemory() for _ in range(SESSIONS)]
    for memory in memories:
        said = [Msg("user", f"what was said, part {part}", "user") for part in range(SAID)]
        await memory.add(said)
        await memory.get_memory()
    return memories


def watched() -> list[float]:
    """Return a list to which every collection appends its duration."""
    pauses: list[float] = []
    began = [0.0]

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            began[0] = time.process_time()
        else:
            pauses.append(time.process_time() - began[0])

    gc.callbacks.append(note)
    return pauses


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
    """Return the spread of a setting's runs, as a share of their median."""
    return (max(values) - min(values)) / statistics.median(values)


def tables(raw: Mapping[str, Any]) -> list[Grid]:
    """Return each setting beside Python's default."""
    head = (
        "agents: collector",
        "agents per second",
        "to default",
        "time in the collector",
        "collections",
        "longest pause",
        "slowest of 100 agents",
        "peak growth",
    )
    rows = tuple(_row(row, raw["rows"]) for row in raw["rows"])
    return [Grid("Settings of Python's collector", 1, head, rows)]


def _row(row: Mapping[str, Any], rows: list[dict[str, Any]]) -> tuple[str, ...]:
    default = next(each for each in rows if each["case"] == default_of(row))
    ratio = row["agents_per_cpu_second"] / default["agents_per_cpu_second"]
    return (
        row["case"],
        f"{row['agents_per_cpu_second']:,.0f} (±{row['spread'] / 2:.0%})",
        f"{ratio:.2f}×",
        f"{row['collector_share']:.1%}",
        f"{row['collections']:,.0f}",
        f"{row['longest_pause_ms']:.1f} ms",
        f"{row['slowest_of_100_agents_ms']:.1f} ms",
        f"{row['peak_growth_mb']:.1f} MB",
    )


def default_of(row: Mapping[str, Any]) -> str:
    """Return the case with Python's default collector settings."""
    return f"{row['case'].partition(':')[0]}: {SETTINGS[0].name}"


def charts(raw: Mapping[str, Any]) -> list[Chart]:
    """Return speed, pauses and memory of each setting."""
    columns = {
        "agents per CPU second": "agents_per_cpu_second",
        "longest pause (ms)": "longest_pause_ms",
        "peak growth (MB)": "peak_growth_mb",
    }
    panels = {title: _bars(raw["rows"], key) for title, key in columns.items()}
    names = [setting.name for setting in SETTINGS]
    title = "Python's collector under agents that come and go"
    return [Chart("agent-lifecycle", title, panels, names=names)]


def _bars(rows: list[dict[str, Any]], key: str) -> dict[str, list[float]]:
    return {
        f"{kind} agents": [row[key] for row in rows if row["case"].startswith(f"{kind}:")]
        for kind in WORKLOADS
    }


BENCHMARK = Benchmark(
    "agent-lifecycle",
    "settings of Python's collector under agents that come and go",
    LifecycleOptions,
    measure,
    tables,
    charts,
    notes=(
        f"{AGENTS:,} agents of {SAID} messages each come and go, {ALIVE} of them alive at a time, "
        f"beside {SESSIONS:,} sessions of {SAID} messages that stay. Medians; times are CPU times. "
        "± is half the range of the rounds."
    ),
    packages=("memoryspace",),
)

if __name__ == "__main__":
    done = asyncio.run(measured(SETTINGS[int(sys.argv[1])], sys.argv[2]))
    sys.stdout.write(json.dumps(done))
