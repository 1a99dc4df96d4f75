"""False positives of the injection filter: ordinary talk mistaken for orders to a model.

Reads every conversation, article and question of a folder, each text in its role. System prompts
and tool output are not talk and are left out. Every quarantined text is reported, with the rule
that matched.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...service.trust import suspicion
from ..harness.benchmark import Benchmark, Grid, Raw, Run
from ..harness.data import unpacked
from ..harness.experiment import CannotRun
from ..harness.options import Flags
from ..harness.timing import CPU

NOT_TALK = ("system", "tool")


def texts_in(data: Any, role: str | None = None) -> Iterator[tuple[str | None, str]]:
    """Yield every text in a row of any schema, with its role if it has one."""
    if isinstance(data, str):
        yield role, data
    elif isinstance(data, list):
        for each in data:
            yield from texts_in(each, role)
    elif isinstance(data, dict) and data.get("role") not in NOT_TALK:
        for each in data.values():
            yield from texts_in(each, data.get("role", role))


def held_back(path: Path, say: Callable[[str], None]) -> Raw:
    """Return how many texts there are, how many are quarantined, and the seconds taken."""
    texts = held = 0
    began = CPU()
    for line in unpacked(path).splitlines():
        for role, text in texts_in(json.loads(line)):
            texts += 1
            found = suspicion(text, role=role)
            if found is not None:
                held += 1
                around = text[max(0, found.start - 40) : found.start + 120]
                say(f"  {found.pattern}: {around!r}")
    return {"file": path.name, "texts": texts, "held_back": held, "seconds": CPU() - began}


@dataclass(frozen=True)
class OrdersOptions(Flags):
    """No options."""


def measure(options: OrdersOptions, run: Run) -> Raw:
    """Count quarantined texts, file by file."""
    if run.data_path is None:
        raise CannotRun("what is held back is counted in talk: pass --data-path FOLDER")
    return {"rows": [held_back(path, run.say) for path in sorted(run.data_path.glob("*.jsonl*"))]}


def tables(raw: Mapping[str, Any]) -> list[Grid]:
    """Return what is quarantined, file by file."""
    rows = tuple(
        (row["file"], f"{row['texts']:,}", str(row["held_back"]), f"{row['seconds']:.1f} s")
        for row in raw["rows"]
    )
    return [Grid("Ordinary texts held back", 1, ("file", "texts", "held back", "CPU time"), rows)]


BENCHMARK = Benchmark(
    "orders",
    "how much of ordinary talk is taken for orders to a model",
    OrdersOptions,
    measure,
    tables,
    packages=("memoryspace",),
)
