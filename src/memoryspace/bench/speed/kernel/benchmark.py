"""The benchmark of the memory space against a dict of bytes, a raw file and a raw engine.

Ours and the reference run in the same process, in turns; a ratio is the median of the rounds. CPU
work is timed in CPU time, waiting for a disk in wall time. The prototype that this replaces
("seed") reached at 100k objects, relative to a dict of bytes: 1/88 for store, 1/1490 for free,
1/1450 for churn. It collected 250 objects a second and took 2.77 s to write and 2.65 s to load a
checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ...harness.benchmark import Benchmark, Grid, Raw, Run
from ...harness.options import Flags, option
from .collection import collection, generations
from .faces import faces
from .heap import heap
from .journal import journal
from .memory import memory
from .objects import batches, objects, slope
from .recovery import recovery
from .rows import ROWS
from .tiers import cold, paging

PARTS: Mapping[str, tuple[Callable[[int], dict[str, Any]], int]] = {
    "objects": (objects, 100_000),
    "batches": (batches, 100_000),
    "slope": (slope, 1_000_000),
    "heap": (heap, 100_000),
    "memory": (memory, 100_000),
    "gc": (collection, 1_000_000),
    "generations": (generations, 100_000),
    "journal": (journal, 400),
    "recovery": (recovery, 100_000),
    "cold": (cold, 100_000),
    "paging": (paging, 300_000),
    "faces": (faces, 40_000),
}


@dataclass(frozen=True)
class KernelOptions(Flags):
    """Which parts."""

    only: tuple[str, ...] = option(
        tuple(PARTS), "parts to measure; the others keep their last figures", choices=tuple(PARTS)
    )


def measure(options: KernelOptions, run: Run) -> Raw:
    """Measure each part; a quick run has a tenth of the sizes."""
    found: Raw = {name: each for name, each in run.before.items() if name in PARTS}
    for place, name in enumerate(options.only, 1):
        part, size = PARTS[name]
        size = size // 10 if run.quick else size
        run.say(f"[{place}/{len(options.only)}] {name} (n = {size:,})")
        found[name] = part(size)
    return found


def tables(raw: Mapping[str, Any]) -> list[Grid]:
    """Return the figures beside the targets."""
    rows = [row for name, part in ROWS.items() if name in raw for row in part(raw[name])]
    return [Grid("The kernel beside its targets", 1, ("what", "measured", "target"), tuple(rows))]


BENCHMARK = Benchmark(
    "kernel",
    "the memory space beside a dict of bytes, a raw file and a raw engine",
    KernelOptions,
    measure,
    tables,
    notes=(
        '"Seed" is the prototype that this replaces, through its published ratio to a dict of '
        "bytes, which was measured in this run."
    ),
    packages=("memoryspace", "numpy", "msgspec", "lmdb"),
)
