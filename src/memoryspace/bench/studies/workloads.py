"""Two tiers under load: which objects should be hot, and when to write cold copies.

Every policy has the same bytes of hot memory. ``accesses`` defines the workloads. Cold copies are
written through, or written back: after every ``flush_every`` accesses, and whenever an object
without one is evicted.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from ...events import Event
from ...kernel import Durability, NewObject, TieredMemoryManager, Tiering
from ...kernel.tiers.replacement import POLICIES
from ...kernel.tiers.tiering import WritePolicy
from ..harness.data import Data
from ..harness.experiment import Cell, CellResult, Claim, Experiment, Plot, Table, integer
from ..harness.findings import Findings, NotMeasured
from ..harness.measuring import device_bytes, spread
from ..harness.options import Options, option
from .accesses import WORKLOADS, Access, Load

WRITES = ("write_back", "write_through")
BINS = 100  # points of a curve over time
_BATCH = 64  # objects per batch while filling
CHECKPOINT = 4 << 20  # bytes of journal
COUNTED = ("page_faults", "page_evictions", "page_writes", "promotions", "demotions")


@dataclass(frozen=True)
class WorkloadOptions(Options):
    """The numbers of objects and accesses, and the share of hot objects."""

    seeds: tuple[int, ...] = option(
        (1, 2, 3), "number of seeds, or the seeds themselves", quick=(1,)
    )
    workloads: tuple[str, ...] = option(tuple(WORKLOADS), "which", choices=tuple(WORKLOADS))
    strategies: tuple[str, ...] = option(
        tuple(POLICIES), "demotion policies", choices=tuple(POLICIES), quick=("lru", "sieve", "arc")
    )
    writes: tuple[str, ...] = option(WRITES, "when cold copies are written", choices=WRITES)
    keys: int = option(5000, "objects at the start", quick=400)
    accesses: int = option(20_000, "reads and writes after that", quick=400)
    hot_share: float = option(0.1, "hot bytes per byte stored at the start")
    flush_every: int = option(500, "accesses between two flushes of write-back", quick=100)
    sync: str = option("os", "when the journal is synced: always, group:MS, os")


def cells(options: WorkloadOptions, data: Data) -> list[Cell]:
    """Return a cell for each workload, strategy and write policy."""
    return [
        {
            "workload": workload, "strategy": strategy, "writes": writes, "keys": options.keys,
            "accesses": options.accesses, "hot_share": options.hot_share,
            "flush_every": options.flush_every, "sync": options.sync, "engine": _engine(),
            "seed": seed,
        }
        for workload in options.workloads
        for strategy in options.strategies
        for writes in options.writes
        for seed in options.seeds
    ]  # fmt: skip


def run(cell: Cell, data: Data) -> CellResult:
    """Play a workload to a tiered space on disk."""
    load = Load(integer(cell, "keys"), integer(cell, "accesses"), integer(cell, "seed"))
    first = list(load.first())
    accesses = list(WORKLOADS[str(cell["workload"])](load))
    hot = int(sum(each.size for each in first) * float(cell["hot_share"] or 0))
    temporary = tempfile.TemporaryDirectory(prefix="memoryspace-bench-")
    with temporary as folder, _space(cell, folder, hot) as space:
        tiered = TieredRun(space, Path(folder), integer(cell, "flush_every"))
        tiered.fill(first)
        tiered.play(accesses, data)
        return tiered.result(hot)


def _space(cell: Cell, folder: str, hot: int) -> TieredMemoryManager:
    return TieredMemoryManager(
        hot,
        folder=folder,
        durability=Durability(sync=str(cell["sync"]), checkpoint_bytes=CHECKPOINT),
        retriever=None,
        tiering=Tiering(
            paging_strategy=str(cell["strategy"]),
            write_policy=cast(WritePolicy, cell["writes"]),
            flush_interval=None,  # no thread, for reproducible runs
        ),
    )


class TieredRun:
    """A space under load, with its counters and timings."""

    def __init__(self, space: TieredMemoryManager, folder: Path, flush_every: int) -> None:
        self.space, self.folder, self.flush_every = space, folder, flush_every
        self.ids: list[str] = []
        self.written = 0  # bytes that the caller wrote
        self.checkpointed = 0
        self.reading: list[float] = []
        self.writing: list[float] = []
        self.flushing: list[float] = []
        self.syncing: list[float] = []
        self.curves: dict[str, list[float]] = {
            name: [] for name in ("accesses", "hit rate", "journal_mb", "cold_mb", "faults")
        }
        self.on_disk: list[float] = []
        space.events.subscribe(self._hear)

    def fill(self, first: Sequence[Access]) -> None:
        """Store the initial objects, before measurement starts."""
        for at in range(0, len(first), _BATCH):
            new = [NewObject(_payload(each)) for each in first[at : at + _BATCH]]
            self.ids += [stored.id for stored in self.space.store_many(new)]
        self._flush()
        self.flushing, self.syncing, self.checkpointed = [], [], 0
        self.start = self._counts()

    def play(self, accesses: Sequence[Access], data: Data) -> None:
        """Run all accesses, and record the points of the curves."""
        size = max(1, len(accesses) // BINS)
        before = self.start
        for number, access in enumerate(accesses, 1):
            self._do(access)
            if number % self.flush_every == 0:
                self._flush()
            if number % size == 0:
                before = self._note_point(number, before)
                data.tick(number, len(accesses))
        self._flush()

    def result(self, hot: int) -> CellResult:
        """Return the result, including the last flush."""
        took = {name: value - self.start[name] for name, value in self._counts().items()}
        asked = took["hits"] + took["misses"]
        written = took["journal"] + took["cold"]
        figures = {
            "hot_kb": hot / 1e3,
            "hit_rate": took["hits"] / asked if asked else 0.0,
            **{name: took[name] for name in COUNTED},
            "cold_written_kb": took["cold"] / 1e3,
            "journal_kb": took["journal"] / 1e3,
            "asked_to_write_kb": self.written / 1e3,
            "write_amplification": written / self.written,
        }
        timings = {
            **spread("read", self.reading),
            **spread("write", self.writing),
            **spread("flush", self.flushing, unit="ms"),
            **spread("sync", self.syncing, unit="ms"),
            "accesses_per_s": (len(self.reading) + len(self.writing))
            / (sum(self.reading) + sum(self.writing) + sum(self.flushing)),
            "with_checkpoints": (written + self.checkpointed) / self.written,
            "device_amplification": took["device"] / self.written,
        }
        times = {
            "flush_ms": [seconds * 1e3 for seconds in self.flushing],
            "sync_ms": [seconds * 1e3 for seconds in self.syncing],
            "write_us": [
                seconds * 1e6 for seconds in self.writing[:: len(self.writing) // 500 + 1]
            ],
            "journal_on_disk_mb": self.on_disk,
        }
        return CellResult(figures, timings, self.curves, times)

    def _do(self, access: Access) -> None:
        started = time.perf_counter()
        if access.verb == "read":
            self.space.load(self.ids[access.key])
            self.reading.append(time.perf_counter() - started)
            return
        payload = _payload(access)
        if access.verb == "store":
            self.ids.append(self.space.store(payload).id)
        else:
            self.space.update(self.ids[access.key], payload=payload)
        self.writing.append(time.perf_counter() - started)
        self.written += access.size

    def _flush(self) -> None:
        """Write the cold tier, then sync the journal."""
        started = time.perf_counter()
        self.space.flush_dirty()
        flushed = time.perf_counter()
        self.space.flush()
        self.flushing.append(flushed - started)
        self.syncing.append(time.perf_counter() - flushed)

    def _note_point(self, number: int, before: dict[str, float]) -> dict[str, float]:
        now = self._counts()
        hits, misses = now["hits"] - before["hits"], now["misses"] - before["misses"]
        self.curves["accesses"].append(number)
        self.curves["hit rate"].append(hits / (hits + misses) if hits + misses else 0.0)
        self.curves["journal_mb"].append((now["journal"] - self.start["journal"]) / 1e6)
        self.curves["cold_mb"].append((now["cold"] - self.start["cold"]) / 1e6)
        self.curves["faults"].append(now["page_faults"] - before["page_faults"])
        segments = (self.folder / "journal").glob("*.log")
        self.on_disk.append(sum(_length(path) for path in segments) / 1e6)
        return now

    def _counts(self) -> dict[str, float]:
        stats: dict[str, Any] = self.space.stats()
        assert self.space.wal is not None  # it has a folder
        return {
            "hits": stats["hot_hits"],
            "misses": stats["cold_hits"],
            **{name: stats[name] for name in COUNTED},
            "cold": self.space.cold.stats.bytes_written,
            "journal": self.space.wal.bytes_written,
            "device": device_bytes(),
        }

    def _hear(self, event: Event) -> None:
        if event.name == "checkpoint":
            self.checkpointed += event.data["bytes"]


def _payload(access: Access) -> dict[str, str]:
    return {"text": "x" * access.size}


def _length(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # a segment that was just dropped
        return 0


def _engine() -> str:
    return "lmdb" if find_spec("lmdb") is not None else "sqlite"


def _best(found: Findings, workload: str) -> tuple[float, dict[str, float]]:
    where = {"workload": workload, "writes": "write_back"}
    rates = {str(g.cell["strategy"]): g.figures["hit_rate"].mean for g in found.where(where)}
    if len(rates) < 2 or "arc" not in rates:
        raise NotMeasured(workload)
    return max(rates.values()), rates


def _arc_is_close(found: Findings) -> bool:
    measured = dict.fromkeys(str(group.cell["workload"]) for group in found.groups)
    bests = [_best(found, workload) for workload in measured]
    return all(rates["arc"] >= best - 0.02 for best, rates in bests)


def _back_writes_less(found: Findings) -> bool:
    back = found.where({"writes": "write_back"})
    through = found.where({"writes": "write_through"})
    if not back or len(back) != len(through):
        raise NotMeasured("one write policy alone")
    return all(
        one.figures["page_writes"].mean <= other.figures["page_writes"].mean
        for one, other in zip(back, through, strict=True)
    )


EXPERIMENT = Experiment(
    "workloads",
    "who should be hot and when cold copies should be written, under four workloads",
    WorkloadOptions,
    cells,
    run,
    tables=(
        Table(
            "Reads that were hot, and what paging took",
            {"writes": "write_back"},
            ("hot_kb", "hit_rate", *COUNTED, "read_p50_us", "read_p99_us"),
            ("workload", "strategy"),
        ),
        Table(
            "What is written for each byte that was asked to be",
            columns=("asked_to_write_kb", "journal_kb", "cold_written_kb", "page_writes",
                     "write_amplification", "with_checkpoints", "device_amplification",
                     "write_p50_us", "write_p99_us", "flush_p50_ms", "flush_p99_ms",
                     "sync_p50_ms", "accesses_per_s"),
            rows=("workload", "strategy", "writes"),
            note="Journal and cold tier, in bytes of content; what the process sent to the device, "
            "with the engine's pages and checkpoints, is timed: it depends on the machine. "
            "A flush brings the cold tier up to date, a sync the journal to the disk.",
        ),
    ),
    plots=(
        Plot("workloads-hits", "Reads that were hot", "heat", "hit_rate", "strategy", "workload",
             where={"writes": "write_back"}),
        Plot("workloads-hits-over-time", "Reads that were hot, over time", "series", "hit rate",
             "accesses", "strategy", facet="workload", where={"writes": "write_back"}),
        Plot("workloads-faults", "Page faults", "heat", "page_faults", "strategy", "workload",
             where={"writes": "write_back"}),
        Plot("workloads-evictions", "Evictions", "bars", "page_evictions", "workload", "strategy",
             where={"writes": "write_back"}),
        Plot("workloads-amplification", "Bytes written for each byte asked for", "bars",
             "write_amplification", "strategy", "writes", facet="workload"),
        Plot("workloads-device", "Bytes sent to the device for each byte asked for", "bars",
             "device_amplification", "strategy", "writes", facet="workload", log_y=True),
        Plot("workloads-cold-writes", "Cold copies written", "bars", "page_writes", "strategy",
             "writes", facet="workload", log_y=True),
        Plot("workloads-journal", "Journal written", "series", "journal_mb", "accesses",
             "workload", where={"strategy": "arc", "writes": "write_back"}, y_label="MB"),
        Plot("workloads-journal-on-disk", "Journal on disk: checkpoints let go of it", "series",
             "journal_on_disk_mb", "accesses", "workload",
             where={"strategy": "arc", "writes": "write_back"}, y_label="MB"),
        Plot("workloads-flush", "How long a flush of the cold tier takes", "cdf", "flush_ms",
             group="workload", where={"strategy": "arc", "writes": "write_back"}, x_label="ms",
             log_x=True),
        Plot("workloads-write", "How long a write takes", "cdf", "write_us", group="writes",
             facet="workload", where={"strategy": "arc"}, x_label="µs", log_x=True),
    ),
    claims=(
        Claim("ARC, the default, is within 0.02 of the best policy under each workload",
              _arc_is_close),
        Claim("write-back writes no more cold copies than write-through", _back_writes_less),
    ),
)  # fmt: skip
