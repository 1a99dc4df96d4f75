"""The cost of observability: verbs with and without their event wrapper, side by side.

Each round does the same work in three ways, in turn: with the verbs as written in the source,
without the wrapper that makes them operations; as shipped, without a listener; and with a listener.
The tables show the medians of the rounds' ratios; 1.00 is no cost.
"""

from __future__ import annotations

import asyncio
import gc
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ...events import EventStream
from ...kernel import Durability
from ...memory import InMemoryMemory
from ...message import Msg, new_id
from ...record import Record, Scope
from ...service import InMemoryMemoryService, ServiceSettings
from ...store import MemoryStore, SpaceStore, Store
from ...testing import capture
from ...verbs import Observed, is_operation
from ..harness.benchmark import Benchmark, Grid, Raw, Run
from ..harness.options import Flags, option

Listening = Callable[[EventStream], AbstractContextManager[Any]]
Work = Callable[[Listening, int], Awaitable[float]]

SCOPE = Scope("ann", "one")
SEARCHES = 100


@dataclass(frozen=True)
class EventsOptions(Flags):
    """The number of rounds and calls."""

    rounds: int = option(15, "rounds per call", quick=3)
    calls: int = option(2000, "calls per round", quick=200)


def measure(options: EventsOptions, run: Run) -> Raw:
    """Measure each call in three ways."""
    return {"rounds": options.rounds, "rows": asyncio.run(_measured(options, run))}


async def _measured(options: EventsOptions, run: Run) -> list[Raw]:
    rows = []
    with TemporaryDirectory() as folder:
        works: dict[str, Work] = {
            "MemoryStore.count": partial(counting, MemoryStore),
            "MemoryStore.append": partial(appending, MemoryStore),
            "SpaceStore.append": partial(appending, partial(space_store, Path(folder))),
            "InMemoryMemory.add": adding,
            "InMemoryMemoryService.add_memory": remembering,
            "InMemoryMemoryService.search": searching,
        }
        for name, work in works.items():
            run.say(name)
            calls = SEARCHES if name.endswith("search") else options.calls
            rows.append(await compare(name, work, options.rounds, calls))
    return rows


async def compare(name: str, work: Work, rounds: int, calls: int) -> Raw:
    plain: list[float] = []
    unheard: list[float] = []
    heard: list[float] = []
    ways: list[tuple[list[float], Callable[[], AbstractContextManager[Any]], Listening]]
    ways = [(plain, without_wrappers, silence), (unheard, nullcontext, silence)]
    ways.append((heard, nullcontext, capture))
    await work(silence, calls)
    for number in range(rounds):
        first = number % len(ways)
        for times, around, listening in ways[first:] + ways[:first]:
            gc.collect()
            with around():
                times.append(await work(listening, calls))
    return {
        "call": name,
        "plain_us": statistics.median(plain) / calls * 1e6,
        "unheard": ratio(unheard, plain),
        "heard": ratio(heard, plain),
    }


def ratio(some: list[float], plain: list[float]) -> float:
    return statistics.median(a / b for a, b in zip(some, plain, strict=True))


def silence(_: EventStream) -> AbstractContextManager[Any]:
    return nullcontext()


@contextmanager
def without_wrappers() -> Iterator[None]:
    """Remove the wrappers from the verbs of all stores and services."""
    wrapped = [
        (kind, name, verb)
        for kind in set(family(Observed))
        for name, verb in list(vars(kind).items())
        if is_operation(name, getattr(verb, "__wrapped__", None))
    ]
    for kind, name, verb in wrapped:
        setattr(kind, name, verb.__wrapped__)
    try:
        yield
    finally:
        for kind, name, verb in wrapped:
            setattr(kind, name, verb)


def family(kind: type[Any]) -> Iterator[type[Any]]:
    yield kind
    for each in kind.__subclasses__():
        yield from family(each)


# -- what is done ----------------------------------------------------------------------------------


def space_store(folder: Path) -> SpaceStore:
    return SpaceStore(folder / new_id(), durability=Durability(sync="os"))


async def counting(make: Callable[[], Store], listening: Listening, calls: int) -> float:
    async with make() as store:
        with listening(store.events):
            began = time.perf_counter()
            for _ in range(calls):
                await store.count(SCOPE)
            return time.perf_counter() - began


async def appending(make: Callable[[], Store], listening: Listening, calls: int) -> float:
    records = [
        Record(str(number), "tea", text="tea", kind="note", created_at=1.0)
        for number in range(calls)
    ]
    async with make() as store:
        await store.count(SCOPE)
        with listening(store.events):
            began = time.perf_counter()
            for record in records:
                await store.append(SCOPE, [record])
            return time.perf_counter() - began


async def adding(listening: Listening, calls: int) -> float:
    messages = [Msg("Ann", "tea", "user") for _ in range(calls)]
    memory = InMemoryMemory()
    with listening(memory.events):
        began = time.perf_counter()
        for message in messages:
            await memory.add(message)
        return time.perf_counter() - began


async def remembering(listening: Listening, calls: int) -> float:
    async with InMemoryMemoryService(settings=ServiceSettings(embedder=None)) as service:
        with listening(service.events):
            began = time.perf_counter()
            for _ in range(calls):
                await service.add_memory("ann", "tea")
            return time.perf_counter() - began


async def searching(listening: Listening, calls: int) -> float:
    async with InMemoryMemoryService(settings=ServiceSettings(embedder=None)) as service:
        await service.add_memory("ann", [f"tea number {number}" for number in range(200)])
        await service.search("ann", "tea")
        with listening(service.events):
            began = time.perf_counter()
            for number in range(calls):
                await service.search("ann", f"tea {number}")
            return time.perf_counter() - began


def tables(raw: Mapping[str, Any]) -> list[Grid]:
    """Return the cost of each call, as a multiple of the same without its wrapper."""
    rows = tuple(
        (row["call"], f"{row['plain_us']:.2f} µs", f"{row['unheard']:.3f}×", f"{row['heard']:.3f}×")
        for row in raw["rows"]
    )
    head = ("call", "without events", "nobody listens", "somebody listens")
    return [Grid("What being observable costs", 1, head, rows, f"{raw['rounds']} rounds.")]


BENCHMARK = Benchmark(
    "events",
    "what being observable costs: verbs with and without their events",
    EventsOptions,
    measure,
    tables,
    packages=("memoryspace",),
)
