"""A space of a million objects: the cost of storing, finding, holding and collecting them."""

from __future__ import annotations

from dataclasses import dataclass

from ..harness.data import Data
from ..harness.experiment import Cell, CellResult, Claim, Experiment, Plot, Table
from ..harness.findings import Findings, Group, NotMeasured
from ..harness.options import Options, option
from .children import run_apart
from .system_run import PAUSE


@dataclass(frozen=True)
class SystemOptions(Options):
    """The number of objects, and the journal's sync policy."""

    objects: tuple[int, ...] = option(
        (10_000, 100_000, 1_000_000), "objects stored", quick=(1000, 5000)
    )
    sync: str = option("group:5", "when the journal is synced: always, group:MS, os")


def cells(options: SystemOptions, data: Data) -> list[Cell]:
    """Return a cell for each number of objects."""
    return [
        {"objects": count, "sync": options.sync, "seed": seed}
        for count in options.objects
        for seed in options.seeds
    ]


def run(cell: Cell, data: Data) -> CellResult:
    """Run a cell in a process of its own, whose memory is measured."""
    return run_apart("system_run", cell, data.tick)


def _timing(group: Group, name: str) -> float:
    found = group.value(name)
    if found is None:
        raise NotMeasured(name)
    return found.mean


def _all_garbage(found: Findings) -> bool:
    return all(
        group.figures["freed"].values == group.figures["garbage"].values for group in found.groups
    )


def _short_pauses(found: Findings) -> bool:
    return all(_timing(group, "pause_p99_ms") <= 1.2e3 * PAUSE for group in found.groups)


def _flat(found: Findings, name: str, factor: float) -> bool:
    """Compare the largest space with one of 10,000; below that, one-time costs dominate."""
    sizes = {int(str(group.cell["objects"])): group for group in found.groups}
    large = sorted(size for size in sizes if size >= 10_000)
    if len(large) < 2:
        raise NotMeasured("one size says nothing about growth")
    return _timing(sizes[large[-1]], name) <= factor * _timing(sizes[large[0]], name)


EXPERIMENT = Experiment(
    "system",
    "what a space of up to a million objects costs: time, pauses, memory",
    SystemOptions,
    cells,
    run,
    tables=(
        Table(
            "Storing and finding",
            columns=("payload_mb", "hit@1", "store_per_s", "store_cpu_us", "store_p50_us",
                     "store_p99_us", "store_max_us", "retrieve_p50_us", "retrieve_p99_us"),
            rows=("objects",),
            note="Journalled and searchable at once. Times are what the caller waited; cpu is "
            "processor time.",
        ),
        Table(
            "GCScheduler three objects in ten, in slices of 1 ms, while others are stored",
            columns=("garbage", "freed", "slices", "pause_p50_ms", "pause_p99_ms", "pause_max_ms",
                     "pause_waited_max_ms", "freed_per_s", "python_gc_ms"),
            rows=("objects",),
            note="A pause is the processor time of a slice; waited is by the clock on the wall, "
            "with whatever else the machine did.",
        ),
        Table(
            "Memory and disk",
            columns=("payload_mb", "resident_mb", "resident_per_payload", "bytes_beside_payload",
                     "disk_mb", "close_s", "reopen_s"),
            rows=("objects",),
            note="Beside the payload: heap, table, index of words, a reference for each object.",
        ),
    ),
    plots=(
        *(
            Plot(
                f"system-{name}", title, "series", f"{name}_per_s", "objects stored", "objects",
                y_label="a second", log_x=True, log_y=name != "store",
            )
            for name, title in (
                ("store", "Stores a second while the space grows"),
                ("load", "Loads a second while the space grows"),
                ("retrieve", "Retrievals a second while the space grows"),
            )
        ),
        Plot("system-pauses", "How long a slice of collection takes", "cdf", "pauses_ms",
             group="objects", x_label="ms of processor time", log_x=True),
        Plot("system-histogram", "Slices of collection by length", "series", "slices",
             "pause up to, ms", "objects", log_x=True, log_y=True),
        Plot("system-pause-growth", "The longest 1 % of slices", "lines", "pause_p99_ms",
             "objects", log_x=True, y_label="ms"),
        Plot("system-memory", "Resident memory while the space grows", "series", "resident_mb",
             "objects stored", "objects", y_label="MB", log_x=True, log_y=True),
    ),
    claims=(
        Claim("everything that nothing leads to is freed, and nothing else", _all_garbage),
        Claim("99 slices of 100 keep to their millisecond, give or take a fifth", _short_pauses),
        Claim("a store takes at most 1.5 times as much processor time in the largest space as in "
              "one of 10,000", lambda found: _flat(found, "store_cpu_us", 1.5)),
        Claim("what an object takes beside its text is no more in the largest space than in one "
              "of 10,000", lambda found: _flat(found, "bytes_beside_payload", 1.0)),
    ),
)  # fmt: skip
