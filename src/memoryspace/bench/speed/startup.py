"""What a new process costs: Python alone, the package, the door, and commands of the command line.

Every case is a process of its own, in turns; the CPU time of the process counts, so that other
programs on the machine disturb little. The first round only warms the disk's cache.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import Any

from ..harness.benchmark import Benchmark, Grid, Raw, Run
from ..harness.options import Flags, option
from ..harness.timing import duration

_CASES: Mapping[str, Sequence[str]] = {
    "python": ["-c", "pass"],
    "import memoryspace": ["-c", "import memoryspace"],
    "import memoryspace.door": ["-c", "import memoryspace.door"],
    "memoryspace --help": ["-m", "memoryspace", "--help"],
    "memoryspace add": ["-m", "memoryspace", "add", "I live in Rome."],
    "memoryspace search": ["-m", "memoryspace", "search", "Where do I live?"],
}
_GOALS = {"import memoryspace": 0.2, "memoryspace --help": 0.3}  # seconds


@dataclass(frozen=True)
class StartupOptions(Flags):
    """The number of rounds."""

    rounds: int = option(15, "processes of each case", quick=1)


def measure(options: StartupOptions, run: Run) -> Raw:
    """Measure each case in each round."""
    times: dict[str, list[float]] = {name: [] for name in _CASES}
    with TemporaryDirectory() as folder:
        own = {"MEMORYSPACE_HOME": f"{folder}/memory", "MEMORYSPACE_EMBEDDER": "none"}
        for number in range(options.rounds + 1):
            run.say(f"round {number} of {options.rounds}")
            for name, arguments in _CASES.items():
                took = _seconds(arguments, {**os.environ, **own})
                if number:
                    times[name].append(took)
    return {"rounds": options.rounds, "seconds": times}


def _seconds(arguments: Sequence[str], environment: Mapping[str, str]) -> float:
    """Return the CPU time of a process."""
    before = os.times()
    subprocess.run(
        [sys.executable, *arguments], env=environment, check=True, stdout=subprocess.DEVNULL
    )
    after = os.times()
    children = after.children_user - before.children_user
    return children + after.children_system - before.children_system


def tables(raw: Mapping[str, Any]) -> list[Grid]:
    """Return the medians, and the fastest and the slowest process."""
    rows = [
        (
            name,
            *(duration(shown(seconds)) for shown in (statistics.median, min, max)),
            f"< {duration(_GOALS[name])}" if name in _GOALS else "",
        )
        for name, seconds in raw["seconds"].items()
    ]
    head = ("process", "median", "least", "most", "goal")
    return [Grid("CPU time of a process", 1, head, tuple(rows), f"{raw['rounds']} processes each.")]


BENCHMARK = Benchmark(
    "startup", "what a new process costs: imports and commands", StartupOptions, measure, tables
)
