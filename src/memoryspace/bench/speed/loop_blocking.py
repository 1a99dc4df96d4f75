"""Event-loop blocking by the embedded space, for every kind of disk wait.

A watchdog task asks to be woken every millisecond and records how late it was. The target is at
most 5 ms. An idle process sleeps for a millisecond at a time and records the same, as a measure of
the machine itself. If that exceeds the target, the machine is too busy and the figures say nothing.
"""

from __future__ import annotations

import asyncio
import gc
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ...kernel import AsyncMemoryManager, Durability, TieredMemoryManager
from ...message import Msg
from ...record import Record, Scope, Where
from ...store import SpaceStore
from ..harness.benchmark import Benchmark, Grid, Raw, Run
from ..harness.options import Flags, option

TICK = 0.001
GOAL_MS = 5.0
HOT = 4 << 20  # bytes: a few thousand of the records; the rest is cold
TEXT = "Ann said that the ferry to the island leaves at nine. " * 10
BATCH = 1000
SESSION = Scope("ann", "one")
USER = Scope("ann")

IDLE = """
import sys, time
while True:
    asked = time.monotonic()
    time.sleep(0.001)
    late = time.monotonic() - asked - 0.001
    print(asked, late * 1e3, flush=True)
"""

DiskWork = Callable[[], Awaitable[object]]
Late = dict[str, list[list[float]]]


class Watchdog:
    """Records how late a loop wakes a task that asked for every millisecond."""

    def __init__(self) -> None:
        self.late: list[float] = []

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self._watch())
        await asyncio.sleep(2 * TICK)
        try:
            yield
        finally:
            await asyncio.sleep(2 * TICK)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _watch(self) -> None:
        while True:
            asked = time.perf_counter()
            await asyncio.sleep(TICK)
            self.late.append((time.perf_counter() - asked - TICK) * 1e3)


class Idle:
    """An idle process, and how late it was woken."""

    def __init__(self, notes: Path) -> None:
        self._notes = notes
        with notes.open("w") as output:
            self._process = subprocess.Popen([sys.executable, "-c", IDLE], stdout=output)

    def worst_since(self, began: float) -> float:
        lines = [line.split() for line in self._notes.read_text().splitlines()[:-1]]
        return max((float(late) for asked, late in lines if float(asked) >= began), default=0.0)

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


class Rows:
    """The watchdog's records, by kind of work and round."""

    def __init__(self) -> None:
        self.late: Late = {}
        self.idle: dict[str, list[float]] = {}

    async def note(self, name: str, step: DiskWork, idle: Idle) -> None:
        gc.collect()
        dog, began = Watchdog(), time.monotonic()
        async with dog.watching():
            held = await step()  # freed outside the measurement: freeing is up to the caller
        del held
        self.late.setdefault(name, []).append(dog.late)
        self.idle.setdefault(name, []).append(idle.worst_since(began))

    def summary(self) -> list[Raw]:
        return [
            {
                "work": name,
                "worst_ms": [max(late) for late in rounds],
                "over": sum(each > GOAL_MS for late in rounds for each in late),
                "ticks": sum(map(len, rounds)),
                "idle_ms": self.idle[name],
            }
            for name, rounds in self.late.items()
        ]


class Noting:
    """Rows with the idle process of a round."""

    def __init__(self, rows: Rows, idle: Idle) -> None:
        self._rows, self._idle = rows, idle

    async def note(self, name: str, step: DiskWork) -> None:
        await self._rows.note(name, step, self._idle)


def records(count: int) -> list[Record]:
    texts = [f"{number} {TEXT}" for number in range(count)]
    return [Record(f"m{at}", Msg("ann", text, "user"), text) for at, text in enumerate(texts)]


async def one_round(rows: Noting, folder: Path, count: int) -> None:
    await rows.note("the watchdog alone", lambda: asyncio.sleep(1))
    store = SpaceStore(folder / "store", hot_capacity=HOT)
    new = records(count)

    async def adding() -> None:
        for record in new[: count // 4]:
            await store.append(SESSION, [record])

    async def adding_together() -> None:
        for start in range(count // 4, count, BATCH):
            await store.append(SESSION, new[start : start + BATCH])

    async def reading_single() -> None:
        for record in new[:: max(1, count // 500)]:
            await store.select(SESSION, Where(ids=frozenset({record.id})))

    await rows.note("add, one by one (demoting)", adding)
    await rows.note("add, 1,000 at once (demoting)", adding_together)
    await rows.note("select single records, most of them cold", reading_single)
    await rows.note(f"select all {count:,}", lambda: store.select(SESSION))
    await rows.note(f"changes of a user, all {count:,}", lambda: store.changes("ann"))
    await rows.note("count by mark", lambda: store.count(USER, Where(marks=frozenset({"none"}))))
    await rows.note("mark all", lambda: store.mark(SESSION, Where(), add={"seen"}))
    await rows.note("checkpoint", lambda: asyncio.to_thread(store.space.checkpoint))
    await rows.note("scrub", store.scrub)
    await rows.note("close", store.close)
    await rows.note("open", lambda: store.count(USER))
    await rows.note("delete all", lambda: store.delete(SESSION))
    await store.close()
    await checkpoints_beside(rows, folder, count)
    await manager(rows, folder, count)


async def checkpoints_beside(rows: Noting, folder: Path, count: int) -> None:
    durability = Durability(checkpoint_bytes=1 << 20)
    store = SpaceStore(folder / "often", hot_capacity=HOT, durability=durability)
    new = records(count // 4)

    async def adding() -> None:
        for record in new:
            await store.append(SESSION, [record])

    await rows.note("add, a checkpoint every MiB", adding)
    await store.close()


async def manager(rows: Noting, folder: Path, count: int) -> None:
    space = AsyncMemoryManager(TieredMemoryManager(HOT, folder=folder / "space"))
    held: list[str] = []

    async def adding() -> None:
        for number in range(count // 4):
            stored = await space.store({"text": f"{number} {TEXT}"})
            held.append(stored.id)

    async def loading() -> None:
        for each in held[:: max(1, len(held) // 500)]:
            await space.load(each)

    await rows.note("AsyncMemoryManager: store (demoting)", adding)
    await rows.note("AsyncMemoryManager: load, most of them cold", loading)
    await rows.note("AsyncMemoryManager: close", space.close)


@dataclass(frozen=True)
class LoopOptions(Flags):
    """The number of rounds and records."""

    rounds: int = option(3, "rounds over all kinds of work", quick=1)
    records: int = option(20_000, "records in the space", quick=2_000)


def measure(options: LoopOptions, run: Run) -> Raw:
    """Watch a loop during each kind of work."""
    rows = Rows()
    for number in range(options.rounds):
        run.say(f"round {number + 1} of {options.rounds}")
        with TemporaryDirectory() as folder:
            idle = Idle(Path(folder) / "idle")
            try:
                asyncio.run(one_round(Noting(rows, idle), Path(folder), options.records))
            finally:
                idle.stop()
    return {"rounds": options.rounds, "rows": rows.summary()}


def tables(raw: Mapping[str, Any]) -> list[Grid]:
    """Return how late the watchdog was, beside an idle process."""
    rows = tuple(
        (
            row["work"],
            f"{statistics.median(row['worst_ms']):.1f} ms",
            f"{max(row['worst_ms']):.1f} ms",
            f"{row['over']} of {row['ticks']}",
            f"{statistics.median(row['idle_ms']):.1f} ms",
        )
        for row in raw["rows"]
    )
    head = ("work", "worst, median of rounds", "worst of all", "ticks over 5 ms", "idle process")
    note = f"{raw['rounds']} rounds. Where the idle process is late too, the machine was busy."
    return [Grid("How late an event loop is", 1, head, rows, note)]


BENCHMARK = Benchmark(
    "loop-blocking",
    "how long the embedded space holds up an event loop",
    LoopOptions,
    measure,
    tables,
    packages=("memoryspace",),
)
