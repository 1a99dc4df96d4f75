"""What being observable costs: verbs with and without their wrapper, side by side in one run.

    python bench/events.py [--rounds 15] [--calls 2000]

Each round does the same work three ways, in turn: by the verbs as they stand in the source, without
the wrapper that makes operations of them; as they are, with nobody listening; and with a listener.
The medians of the rounds' ratios are printed: 1.00 is no cost.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from memoryspace import (
    EventStream,
    InMemoryMemory,
    InMemoryMemoryService,
    MemoryStore,
    Msg,
    Scope,
    SpaceStore,
    Store,
)
from memoryspace.kernel import Durability
from memoryspace.message import new_id
from memoryspace.record import Record
from memoryspace.service import ServiceSettings
from memoryspace.testing import capture
from memoryspace.verbs import Observed, is_operation

Listening = Callable[[EventStream], AbstractContextManager[Any]]
Work = Callable[[Listening, int], Awaitable[float]]

SCOPE = Scope("ann", "one")
SEARCHES = 100


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--rounds", type=int, default=15)
    arguments.add_argument("--calls", type=int, default=2000)
    chosen = arguments.parse_args()
    asyncio.run(measure(chosen.rounds, chosen.calls))


async def measure(rounds: int, calls: int) -> None:
    print(f"{'call':34} {'plain':>9} {'unheard':>8} {'heard':>7}   × plain, {rounds} rounds")
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
            await compare(name, work, rounds, SEARCHES if name.endswith("search") else calls)


async def compare(name: str, work: Work, rounds: int, calls: int) -> None:
    plain: list[float] = []
    unheard: list[float] = []
    heard: list[float] = []
    ways = [(plain, without_wrappers, silence), (unheard, nullcontext, silence)]
    ways.append((heard, nullcontext, capture))
    await work(silence, calls)
    for number in range(rounds):
        first = number % len(ways)
        for times, around, listening in ways[first:] + ways[:first]:
            gc.collect()
            with around():
                times.append(await work(listening, calls))
    each = statistics.median(plain) / calls * 1e6
    ratios = [f"{ratio(some, plain):8.3f}" for some in (unheard, heard)]
    print(f"{name:34} {each:6.2f} µs {' '.join(ratios)}", flush=True)


def ratio(some: list[float], plain: list[float]) -> float:
    return statistics.median(a / b for a, b in zip(some, plain, strict=True))


def silence(_: EventStream) -> AbstractContextManager[Any]:
    return nullcontext()


@contextmanager
def without_wrappers() -> Iterator[None]:
    """Put the verbs of all stores and services back to what stands in their source."""
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


def family(kind: type) -> Iterator[type]:
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


if __name__ == "__main__":
    main()
