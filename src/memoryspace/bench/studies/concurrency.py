"""Many agents at once: their joint throughput, and whether records are lost or duplicated.

Threads and tasks share one space in a folder; processes have one each, or share the session of a
store. Every agent stores numbered records one by one and waits for each acknowledgement. At the end
everything is reopened and counted.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import msgspec

from ...errors import MemorySpaceError
from ...message import new_id
from ..harness.data import Data
from ..harness.experiment import (
    Cell,
    CellResult,
    Claim,
    Experiment,
    Parameter,
    Plot,
    Table,
    integer,
)
from ..harness.findings import Findings, NotMeasured
from ..harness.measuring import spread
from ..harness.options import Options, option
from ..memories.backends import STORE_BACKENDS, open_backend, place_of, skip_if_missing
from .agents import (
    SPACE,
    Order,
    Worked,
    forget,
    ids_in_space,
    ids_in_store,
    in_tasks,
    in_threads,
    name_of,
)
from .children import spawn

SHARED = tuple(name for name, backend in STORE_BACKENDS.items() if backend.shared)
SYNCS = ("always", "group:5", "os")
_WAITS = 2000  # waits kept for the distribution, at most


@dataclass(frozen=True)
class ConcurrencyOptions(Options):
    """The number of agents of each kind, and the work of each."""

    threads: tuple[int, ...] = option((1, 2, 4, 8, 16, 64), "agents", quick=(1, 4))
    tasks: tuple[int, ...] = option((1, 2, 4, 8, 16, 64, 256), "agents", quick=(1, 16))
    processes: tuple[int, ...] = option((1, 2, 4, 8), "agents", quick=(1, 2))
    backends: tuple[str, ...] = option(
        SHARED, "backends that processes share", choices=SHARED, quick=("sqlite",)
    )
    syncs: tuple[str, ...] = option(
        ("always", "os"), "when a space's journal is synced", choices=SYNCS, quick=("always",)
    )
    records: int = option(200, "records that each agent stores", quick=30)
    seeds: tuple[int, ...] = option((1, 2, 3), "repetitions; nothing here is random", quick=(1,))


def cells(options: ConcurrencyOptions, data: Data) -> list[Cell]:
    """Return a cell for each kind and number of agents."""
    made: list[dict[str, Parameter]] = [
        {"kind": kind, "backend": SPACE, "sync": sync, "agents": agents}
        for kind, counts in (
            ("threads", options.threads),
            ("tasks", options.tasks),
            ("processes", options.processes),
        )
        for sync in options.syncs
        for agents in counts
    ]
    made += [
        {"kind": "processes", "backend": backend, "sync": None, "agents": agents}
        for backend in options.backends
        for agents in options.processes
    ]
    return [
        {**cell, "records": options.records, "seed": seed}
        for cell in made
        for seed in options.seeds
    ]


def run(cell: Cell, data: Data) -> CellResult:
    """Run the agents, then count."""
    with tempfile.TemporaryDirectory(prefix="memoryspace-bench-") as folder:
        if cell["backend"] != SPACE:
            return _on_backend(cell, folder)
        agents, count = integer(cell, "agents"), integer(cell, "records")
        sync = str(cell["sync"])
        if cell["kind"] == "processes":
            order = Order(0, count, SPACE, folder, sync)
            worked = in_processes(order, agents)
            parts = [ids_in_space(str(Path(folder, f"agent-{n}")), sync) for n in range(agents)]
            return _result(cell, worked, list(chain.from_iterable(parts)))
        together = in_threads if cell["kind"] == "threads" else in_tasks
        worked = together(folder, sync, agents, count)
        return _result(cell, worked, ids_in_space(folder, sync))


def in_processes(order: Order, agents: int) -> list[Worked]:
    """Start processes, let them begin together, and return what each did."""
    children = [
        spawn("agents", msgspec.structs.replace(order, agent=agent)) for agent in range(agents)
    ]
    lines: list[bytes] = []
    try:
        for child in children:
            assert child.stdout is not None
            child.stdout.readline()  # it is ready
        for child in children:
            assert child.stdin is not None
            child.stdin.write(b"go\n")
            child.stdin.flush()
        lines = [child.stdout.readline() for child in children if child.stdout is not None]
    finally:
        for child in children:
            child.communicate()
    codes = [child.returncode for child in children]
    if any(codes):
        raise MemorySpaceError(f"an agent ended with {next(filter(None, codes))}")
    return [msgspec.json.decode(line, type=Worked) for line in lines]


def _on_backend(cell: Cell, folder: str) -> CellResult:
    backend, agents = str(cell["backend"]), integer(cell, "agents")
    place, user = place_of(backend, folder), f"bench-{new_id()}"

    async def prepare() -> None:
        async with open_backend(backend, place) as store:
            await store.sessions(user)  # create the tables before many agents try to

    with skip_if_missing(backend):
        asyncio.run(prepare())
    try:
        worked = in_processes(Order(0, integer(cell, "records"), backend, folder, "", user), agents)
        return _result(cell, worked, asyncio.run(ids_in_store(backend, place, user)))
    finally:
        asyncio.run(forget(backend, place, user))


def _result(cell: Cell, worked: Sequence[Worked], found: Sequence[str]) -> CellResult:
    agents, count = integer(cell, "agents"), integer(cell, "records")
    wanted = {name_of(agent, number) for agent in range(agents) for number in range(count)}
    times = Counter(found)
    waits = [wait for each in worked for wait in each.waits]
    seconds = max(each.ended for each in worked) - min(each.began for each in worked)
    return CellResult(
        figures={
            "acknowledged": len(waits),
            "lost": len(wanted - times.keys()),
            "doubled": sum(times.values()) - len(times),
            "strange": len(times.keys() - wanted) + sum(each.wrong for each in worked),
            "out_of_order": _out_of_order(found),
        },
        timings={"per_s": len(waits) / seconds, **spread("wait", waits, unit="ms")},
        timed_series={"wait_ms": [wait * 1e3 for wait in waits[:: len(waits) // _WAITS + 1]]},
    )


def _out_of_order(found: Sequence[str]) -> int:
    """Return how often an agent's record precedes one that it stored earlier."""
    newest: dict[str, str] = {}
    wrong = 0
    for name in found:
        agent = name.partition("-")[0]
        wrong += name < newest.get(agent, "")
        newest[agent] = max(name, newest.get(agent, ""))
    return wrong


def _nothing_lost(found: Findings) -> bool:
    names = ("lost", "doubled", "strange", "out_of_order")
    return all(group.figures[name].mean == 0 for group in found.groups for name in names)


def _gain(found: Findings, kind: str, agents: int) -> float:
    where = {"kind": kind, "backend": SPACE, "sync": "always"}
    alone = found.mean("per_s", {**where, "agents": 1})
    return found.mean("per_s", {**where, "agents": agents}) / alone


def _group_commit(found: Findings) -> bool:
    if not any(group.cell["agents"] == 16 for group in found.where({"kind": "threads"})):
        raise NotMeasured("16 threads")
    return _gain(found, "tasks", 16) >= 2 and _gain(found, "threads", 16) >= 2


EXPERIMENT = Experiment(
    "concurrency",
    "how much many agents get done at once, and whether anything is lost or doubled",
    ConcurrencyOptions,
    cells,
    run,
    tables=(
        Table(
            "Agents that store records one by one",
            columns=("acknowledged", "lost", "doubled", "strange", "out_of_order", "per_s",
                     "wait_p50_ms", "wait_p99_ms", "wait_max_ms"),
            rows=("kind", "backend", "sync", "agents"),
            note="Lost: acknowledged and not there when all is opened anew. Threads and tasks "
            "share one space; processes have a space each, or append to one session of a store.",
        ),
    ),
    plots=(
        Plot("concurrency-always", "Durable records a second, each synced", "lines", "per_s",
             "agents", "kind", where={"backend": SPACE, "sync": "always"},
             y_label="records a second", log_x=True, log_y=True),
        Plot("concurrency-syncs", "Records a second by sync policy", "lines", "per_s", "agents",
             "sync", facet="kind", where={"backend": SPACE}, y_label="records a second", log_x=True,
             log_y=True),
        Plot("concurrency-shared", "Processes that share one session of a store", "lines", "per_s",
             "agents", "backend", where={"backend": SHARED}, y_label="records a second", log_x=True,
             log_y=True),
        Plot("concurrency-waits", "How long an agent waits for a record to be safe", "cdf",
             "wait_ms", group="agents", facet="kind", where={"backend": SPACE, "sync": "always"},
             x_label="ms", log_x=True),
    ),
    claims=(
        Claim("nothing is lost, doubled or out of order", _nothing_lost),
        Claim("16 tasks, and 16 threads, that wait for the disk share its syncs: they get at least "
              "twice as much done as one", _group_commit),
    ),
)  # fmt: skip
