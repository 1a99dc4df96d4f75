"""Recovery after ``kill -9`` during writes: what survives, and how fast it is back.

A child stores records and reports each acknowledgement; the parent kills it at a random moment,
opens the space, and checks every record. This is repeated in the same space. With ``torn``, the end
of the journal is damaged as well, as a disk may do that loses power during a write: the last
change, and only that one, must be gone completely.

The loss in a power cut cannot be tested here. It is at most what was acknowledged but not yet
synced at the kill, which the child reports: the window.
"""

from __future__ import annotations

import os
import random
import signal
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ...errors import MemorySpaceError
from ...kernel import MemoryManager
from ...kernel.durable.journal.frames import HEADER_BYTES
from ..harness.data import Data
from ..harness.experiment import (
    CannotRun,
    Cell,
    CellResult,
    Claim,
    Experiment,
    Plot,
    Table,
    integer,
)
from ..harness.findings import Findings, NotMeasured
from ..harness.options import Options, option
from .children import spawn
from .crash_writer import Acknowledged, Order, open_space, text_of

SYNCS = ("always", "group:5", "os")
ENDS = ("killed", "torn")
SINGLE = 120  # records stored one by one, at most, before the child is killed
SPIN = 20_000  # longest wait in loop steps, to kill in the middle of an operation
TORN = 40  # bytes lost at most; the shortest record is longer


@dataclass(frozen=True)
class CrashOptions(Options):
    """The number of records, the sync policy, and the number of kills."""

    records: tuple[int, ...] = option(
        (1000, 10_000, 100_000), "records in the space at the first kill", quick=(200, 1000)
    )
    syncs: tuple[str, ...] = option(SYNCS, "when the journal is synced", choices=SYNCS)
    ends: tuple[str, ...] = option(ENDS, "how the journal ends after a kill", choices=ENDS)
    kills: int = option(5, "kills per space", quick=1)
    checkpoint_mb: tuple[int, ...] = option(
        (1, 1024), "journal between two checkpoints", quick=(1024,)
    )
    seeds: tuple[int, ...] = option(
        (1, 2, 3), "number of seeds, or the seeds themselves", quick=(1,)
    )


def cells(options: CrashOptions, data: Data) -> list[Cell]:
    """Return a cell for each policy, ending and number of records."""
    return [
        {"sync": sync, "end": end, "records": records, "kills": options.kills,
         "checkpoint_mb": checkpoint, "seed": seed}
        for sync in options.syncs
        for end in options.ends
        for records in options.records
        for checkpoint in options.checkpoint_mb
        for seed in options.seeds
    ]  # fmt: skip


def run(cell: Cell, data: Data) -> CellResult:
    """Kill a writer several times."""
    if not hasattr(signal, "SIGKILL"):
        raise CannotRun("this system has no kill -9")
    with tempfile.TemporaryDirectory(prefix="memoryspace-bench-") as folder:
        crashing = Crashing(cell, folder)
        for number in range(integer(cell, "kills")):
            crashing.once()
            data.tick(number + 1, integer(cell, "kills"))
    return crashing.result()


class Crashing:
    """A space whose writers are killed, and the findings after each kill."""

    def __init__(self, cell: Cell, folder: str) -> None:
        self._cell, self._folder = cell, folder
        self._draw = random.Random(f"crash {cell['sync']} {cell['end']} {cell['seed']}")
        self._records = 0  # records present
        self._lost = self._doubled = self._changed = self._holes = self._beyond = 0
        self._torn_bytes: list[float] = []
        self._recovering: list[float] = []
        self._recovered: list[float] = []
        self._window: list[float] = []
        self._waiting: list[float] = []

    def once(self) -> None:
        """Start a writer, kill it, and check what is left."""
        at_once = 0 if self._records else integer(self._cell, "records")
        checkpoint = integer(self._cell, "checkpoint_mb") << 20
        order = Order(self._folder, str(self._cell["sync"]), checkpoint, self._records, at_once)
        said = killed(order, self._draw)
        self._window.append(max(each.records - each.durable for each in said))
        self._waiting.append(max(each.waiting for each in said))
        torn = tear(Path(self._folder), self._draw) if self._cell["end"] == "torn" else 0
        started = time.perf_counter()
        with open_space(order) as space:
            self._recovering.append(time.perf_counter() - started)
            acknowledged = said[-1].records
            self._judge(space, acknowledged - bool(torn), acknowledged)

    def _judge(self, space: MemoryManager, safe: int, acknowledged: int) -> None:
        """Check every record; those before ``safe`` must exist, whatever was torn."""
        found = [each.payload for each in space.objects()]
        numbers = {each["n"] for each in found}
        self._lost += len(set(range(safe)) - numbers)
        self._doubled += len(found) - len(numbers)
        self._changed += sum(each["text"] != text_of(each["n"]) for each in found)
        self._holes += max(numbers, default=-1) + 1 - len(numbers)
        self._beyond += sum(number >= acknowledged for number in numbers)
        assert space.wal is not None  # it has a folder
        self._torn_bytes.append(space.wal.torn.bytes if space.wal.torn is not None else 0)
        self._recovered.append(len(found))
        self._records = max(numbers, default=-1) + 1

    def result(self) -> CellResult:
        """Return counts that must be zero as figures, and the rest as timings."""
        last = self._recovered
        return CellResult(
            figures={
                "lost": self._lost,
                "doubled": self._doubled,
                "changed": self._changed,
                "holes": self._holes,
            },
            timings={
                "kills": len(last),
                "acknowledged": last[-1],
                "unacknowledged_kept": self._beyond,
                "torn_tails": sum(size > 0 for size in self._torn_bytes),
                "recovery_ms": sum(self._recovering) / len(last) * 1e3,
                "recovered_per_s": sum(last) / sum(self._recovering),
                "window_records": max(self._window),
                "window_ms": max(self._waiting) * 1e3,
            },
            timed_series={
                "recovery_ms": [seconds * 1e3 for seconds in self._recovering],
                "records": last,
                "window_ms": [seconds * 1e3 for seconds in self._waiting],
            },
        )


def killed(order: Order, draw: random.Random) -> Sequence[Acknowledged]:
    """Start a writer and kill it at a random moment; return all lines it wrote.

    It has stored at least one record by itself, so that the last change is of one record.
    """
    wanted = order.first + order.at_once + draw.randint(1, SINGLE)
    spin = draw.randrange(SPIN)
    said: list[Acknowledged] = []
    with spawn("crash_writer", order) as child:
        assert child.stdout is not None
        for line in child.stdout:
            if line.endswith(b"\n"):
                said.append(msgspec.json.decode(line, type=Acknowledged))
            if said[-1].records >= wanted and child.returncode is None and spin >= 0:
                for _ in range(spin):
                    pass
                spin = -1
                os.kill(child.pid, signal.SIGKILL)
    if child.returncode != -signal.SIGKILL or not said:
        raise MemorySpaceError(f"the writer ended with {child.returncode} before it was killed")
    return said


def tear(folder: Path, draw: random.Random) -> int:
    """Damage the end of the journal; return how many bytes were lost.

    Do nothing if its newest file has only been started.
    """
    lost = draw.randint(1, TORN)
    newest = max((folder / "journal").glob("*.log"))
    written = len(newest.read_bytes().rstrip(b"\0"))
    if written <= HEADER_BYTES + TORN:
        return 0
    with newest.open("r+b") as file:
        file.seek(written - lost)
        file.write(bytes(lost))
    return lost


def _nothing_lost(found: Findings) -> bool:
    names = ("lost", "doubled", "changed", "holes")
    return all(group.figures[name].mean == 0 for group in found.groups for name in names)


def _always_leaves_no_window(found: Findings) -> bool:
    groups = found.where({"sync": "always"})
    if not groups:
        raise NotMeasured("always")
    return all(group.timings["window_records"].mean == 0 for group in groups)


EXPERIMENT = Experiment(
    "crash",
    "what a kill -9 costs, how soon the space is back, and what a power cut could have cost",
    CrashOptions,
    cells,
    run,
    tables=(
        Table(
            "After kill -9",
            {},
            ("kills", "lost", "doubled", "changed", "holes", "unacknowledged_kept", "torn_tails"),
            ("sync", "end", "records", "checkpoint_mb"),
            note="Lost: acknowledged and not there. Of a torn journal the last change, which was "
            "damaged on purpose, is not counted. Unacknowledged records that are there were "
            "stored, and the process died before it could say so.",
        ),
        Table(
            "Recovery, and the window of a power cut",
            {"end": "killed"},
            ("acknowledged", "recovery_ms", "recovered_per_s", "window_records", "window_ms"),
            ("sync", "records", "checkpoint_mb"),
            note="The window is the most that was acknowledged and not synced at any moment, in "
            "records and in time.",
        ),
    ),
    plots=(
        Plot("crash-recovery", "How long recovery takes", "lines", "recovery_ms", "records",
             "checkpoint_mb", facet="sync", where={"end": "killed"}, y_label="ms", log_x=True,
             log_y=True),
        Plot("crash-window", "What a power cut could cost: time", "bars", "window_ms", "sync",
             "records", facet="checkpoint_mb", where={"end": "killed"}, y_label="ms", log_y=True),
        Plot("crash-window-records", "What a power cut could cost: records", "bars",
             "window_records", "sync", "records", facet="checkpoint_mb", where={"end": "killed"},
             log_y=True),
        Plot("crash-spread", "Recovery times", "cdf", "recovery_ms", group="records",
             facet="checkpoint_mb", x_label="ms", log_x=True),
    ),
    claims=(
        Claim("kill -9 loses, doubles and changes nothing that was acknowledged", _nothing_lost),
        Claim("with sync always, nothing acknowledged was ever waiting for the disk",
              _always_leaves_no_window),
    ),
)  # fmt: skip
