"""Every backend side by side: the cost of a store's verbs by session size.

A session is filled, then each verb is timed on it: ``append`` of one record, ``select`` of
everything, of the newest 20 and of marked records, ``count``, ``mark`` and ``delete`` of 20.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Any

from ...message import Msg, new_id
from ...record import Record, Scope, Where
from ...store import Store
from ..harness.data import Data
from ..harness.experiment import Cell, CellResult, Claim, Experiment, Plot, Table, integer
from ..harness.findings import Findings
from ..harness.measuring import spread
from ..harness.options import Options, option
from ..harness.samples import Words
from ..memories.backends import STORE_BACKENDS, open_backend, place_of, skip_if_missing

BATCH = 100  # records per append while a session is filled
SOME = 20  # records per page, and records marked or deleted at once
MARKED = 50  # one record in this many has the queried mark
MARK = "fact"

VERBS: Mapping[str, str] = {
    "append": "append one record",
    "select_newest": "select the newest 20",
    "select_marked": "select what has a mark",
    "count": "count",
    "mark": "mark 20",
    "delete": "delete 20",
    "select_all": "select everything",
}


@dataclass(frozen=True)
class StoreOptions(Options):
    """Which backends, how many records, how often each verb is timed."""

    backends: tuple[str, ...] = option(
        tuple(STORE_BACKENDS),
        "which",
        choices=tuple(STORE_BACKENDS),
        quick=("memory", "space", "sqlite"),
    )
    records: tuple[int, ...] = option(
        (100, 1000, 10_000, 100_000), "records of a session", quick=(100, 1000)
    )
    rounds: int = option(50, "measurements of each verb", quick=10)
    seeds: tuple[int, ...] = option(
        (1, 2, 3), "number of seeds, or the seeds themselves", quick=(1,)
    )


def cells(options: StoreOptions, data: Data) -> list[Cell]:
    """Return a cell for each backend and number of records."""
    return [
        {"backend": backend, "records": records, "rounds": options.rounds, "seed": seed}
        for backend in options.backends
        for records in options.records
        for seed in options.seeds
    ]


def run(cell: Cell, data: Data) -> CellResult:
    """Fill a session and time the verbs."""
    backend = str(cell["backend"])
    with (
        tempfile.TemporaryDirectory(prefix="memoryspace-bench-") as folder,
        skip_if_missing(backend),
    ):
        return asyncio.run(_measured(cell, place_of(backend, folder)))


async def _measured(cell: Cell, place: str) -> CellResult:
    async with open_backend(str(cell["backend"]), place) as store:
        timing = Timing(store, cell)
        try:
            return await timing.run(integer(cell, "records"), integer(cell, "rounds"))
        finally:
            await store.delete(Scope(timing.scope.user))  # it may be on the user's server


class Timing:
    """A session under measurement. Expected counts are tracked and compared."""

    def __init__(self, store: Store, cell: Cell) -> None:
        self.store = store
        self.scope = Scope(f"bench-{new_id()}", "session")
        self._words = Words(integer(cell, "seed"))
        self._draw = random.Random(f"stores {cell['seed']}")
        self._names: list[str] = []
        self._next = 0  # the number of the next record
        self._wrong = 0
        self.times: dict[str, list[float]] = {verb: [] for verb in VERBS}

    async def run(self, count: int, rounds: int) -> CellResult:
        """Fill, time, and verify the content."""
        filling = await self._fill(count)
        for _ in range(rounds):
            await self._round()
        for _ in range(3):
            found = await self._timed("select_all", self.store.select(self.scope))
            self._expect([each.id for each in found], self._names)
        timings: dict[str, float] = {"fill_per_s": count / filling}
        for verb, times in self.times.items():
            timings |= spread(verb, times)
        figures = {"records": len(self._names), "wrong": self._wrong}
        waits = {f"{verb}_us": [t * 1e6 for t in times] for verb, times in self.times.items()}
        return CellResult(figures, timings, timed_series=waits)

    async def _fill(self, count: int) -> float:
        taken = 0.0
        for at in range(0, count, BATCH):
            new = [self._record() for _ in range(min(BATCH, count - at))]
            started = time.perf_counter()
            added = await self.store.append(self.scope, new)
            taken += time.perf_counter() - started
            self._expect(added, [each.id for each in new])
            self._names += added
        return taken

    async def _round(self) -> None:
        """Run each verb once; the number of records is the same afterwards."""
        store, scope = self.store, self.scope
        for _ in range(SOME):
            new = self._record()
            self._expect(await self._timed("append", store.append(scope, [new])), [new.id])
            self._names.append(new.id)
        newest = Where(limit=SOME, newest=True)
        page = await self._timed("select_newest", store.select(scope, newest))
        self._expect([each.id for each in page], self._names[-SOME:])
        marked = await self._timed(
            "select_marked", store.select(scope, Where(marks=frozenset({MARK})))
        )
        self._expect([each.id for each in marked], [n for n in self._names if _has_mark(n)])
        self._expect(await self._timed("count", store.count(scope)), len(self._names))
        some = frozenset(self._draw.sample(self._names, SOME))
        chosen = Where(ids=some)
        self._expect(await self._timed("mark", store.mark(scope, chosen, add={"seen"})), SOME)
        gone = await self._timed("delete", store.delete(scope, chosen))
        self._expect(set(gone), set(some))
        self._names = [name for name in self._names if name not in some]

    def _record(self) -> Record:
        name, text = f"record-{self._next}", self._words.sentence()
        self._next += 1
        marks = frozenset({MARK}) if _has_mark(name) else frozenset()
        return Record(name, Msg("ann", text, "user"), text, marks)

    async def _timed(self, verb: str, doing: Awaitable[Any]) -> Any:
        started = time.perf_counter()
        found = await doing
        self.times[verb].append(time.perf_counter() - started)
        return found

    def _expect(self, found: Any, wanted: Any) -> None:
        self._wrong += found != wanted


def _has_mark(name: str) -> bool:
    return int(name.rpartition("-")[2]) % MARKED == 0


def _all_right(found: Findings) -> bool:
    return all(group.figures["wrong"].mean == 0 for group in found.groups)


EXPERIMENT = Experiment(
    "stores",
    "what each verb of a store costs on every backend, by the length of a session",
    StoreOptions,
    cells,
    run,
    tables=(
        Table(
            "Microseconds a call, median",
            columns=("wrong", "fill_per_s", *(f"{verb}_p50_us" for verb in VERBS)),
            rows=("backend", "records"),
            note="fill: records a second, 100 at once. space and sqlite sync each change to the "
            "disk as they come, space-os leaves that to the system; servers as they are set up.",
        ),
        Table(
            "Microseconds a call, 99th percentile",
            columns=tuple(f"{verb}_p99_us" for verb in VERBS),
            rows=("backend", "records"),
        ),
    ),
    plots=(
        *(
            Plot(f"stores-{verb.replace('_', '-')}", about.capitalize(), "lines",
                 f"{verb}_p50_us", "records", "backend", y_label="µs a call", log_x=True,
                 log_y=True)
            for verb, about in VERBS.items()
        ),
        Plot("stores-fill", "Records appended a second, 100 at once", "lines", "fill_per_s",
             "records", "backend", log_x=True, log_y=True),
        Plot("stores-waits", "How long appending one record takes", "cdf", "append_us",
             group="backend", facet="records", x_label="µs", log_x=True),
    ),
    claims=(Claim("every backend gives the same answers", _all_right),),
)  # fmt: skip
