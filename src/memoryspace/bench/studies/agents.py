"""Concurrent agents: threads, tasks or processes over one backend or their own.

Each agent stores numbered records, reads each one back, and records its waits. Run as a module,
this is one agent process: it reports ready, waits for the start signal, works, and reports.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

from msgspec import Struct

from ...kernel import AsyncMemoryManager, Durability, MemoryManager
from ...message import Msg
from ...record import Record, Scope
from ...store import Store
from ..memories.backends import open_backend, place_of
from .children import order_of, say

CAPACITY = 1 << 28
SPACE = "space"  # a space in a folder, without a store around it


class Order(Struct):
    """The instructions of an agent process."""

    agent: int
    count: int
    backend: str
    folder: str
    sync: str
    user: str = "agents"


class Worked(Struct):
    """An agent's start and end, on a clock that processes share, and each wait."""

    began: float
    ended: float
    waits: list[float]
    wrong: int = 0  # records read back that differ from what was stored


def name_of(agent: int, number: int) -> str:
    """Return the unique name of a record."""
    return f"{agent:04}-{number:06}"


def text_of(name: str) -> str:
    """Return the text of a record."""
    return f"agent and number {name} " + "x" * 100


def open_space(folder: str, sync: str) -> MemoryManager:
    """Open the space that the agents of one process share."""
    how = Durability(sync=sync)
    return MemoryManager(CAPACITY, folder=folder, durability=how, retriever=None)


def work(space: MemoryManager, agent: int, count: int) -> Worked:
    """Run an agent that may block."""
    waits, wrong = [], 0
    began = time.monotonic()
    for number in range(count):
        name = name_of(agent, number)
        started = time.perf_counter()
        space.store({"text": text_of(name)}, id=name, root=True)
        waits.append(time.perf_counter() - started)
        wrong += space.load(name).payload["text"] != text_of(name)
    return Worked(began, time.monotonic(), waits, wrong)


async def work_async(space: AsyncMemoryManager[MemoryManager], agent: int, count: int) -> Worked:
    """Run an agent as a task."""
    waits, wrong = [], 0
    began = time.monotonic()
    for number in range(count):
        name = name_of(agent, number)
        started = time.perf_counter()
        await space.store({"text": text_of(name)}, id=name, root=True)
        waits.append(time.perf_counter() - started)
        wrong += (await space.load(name)).payload["text"] != text_of(name)
    return Worked(began, time.monotonic(), waits, wrong)


async def work_on_store(store: Store, scope: Scope, agent: int, count: int) -> Worked:
    """Run an agent that appends to a session shared with others."""
    waits, wrong = [], 0
    began = time.monotonic()
    for number in range(count):
        name = name_of(agent, number)
        record = Record(name, Msg("agent", text_of(name), "user"), text_of(name))
        started = time.perf_counter()
        wrong += await store.append(scope, [record]) != [name]
        waits.append(time.perf_counter() - started)
    return Worked(began, time.monotonic(), waits, wrong)


def in_threads(folder: str, sync: str, agents: int, count: int) -> list[Worked]:
    """Run threads that share a space."""
    together = Barrier(agents)

    def one(agent: int) -> Worked:
        together.wait()
        return work(space, agent, count)

    with open_space(folder, sync) as space, ThreadPoolExecutor(agents) as pool:
        return list(pool.map(one, range(agents)))


def in_tasks(folder: str, sync: str, agents: int, count: int) -> list[Worked]:
    """Run tasks of one loop that share a space."""

    async def all_of_them() -> list[Worked]:
        async with AsyncMemoryManager(open_space(folder, sync)) as space:
            return await asyncio.gather(
                *(work_async(space, agent, count) for agent in range(agents))
            )

    return asyncio.run(all_of_them())


def ids_in_space(folder: str, sync: str) -> Sequence[str]:
    """Reopen a space and return the names of all its intact records."""
    with open_space(folder, sync) as space:
        return [each.id for each in space.objects() if each.payload["text"] == text_of(each.id)]


async def ids_in_store(backend: str, place: str, user: str) -> Sequence[str]:
    """Return the names of all intact records of a session, in order."""
    async with open_backend(backend, place) as store:
        found = await store.select(Scope(user, "shared"))
    return [each.id for each in found if each.text == text_of(each.id)]


async def forget(backend: str, place: str, user: str) -> None:
    """Remove the agents' records from the server."""
    async with open_backend(backend, place) as store:
        await store.delete(Scope(user))


def main() -> None:
    """Run one agent process."""
    order = order_of(Order)
    if order.backend == SPACE:
        folder = str(Path(order.folder, f"agent-{order.agent}"))
        with open_space(folder, order.sync) as space:
            _wait_for_the_others()
            say(work(space, order.agent, order.count))
    else:
        asyncio.run(_on_store(order))


async def _on_store(order: Order) -> None:
    place = place_of(order.backend, order.folder)  # arguments are visible to other users
    async with open_backend(order.backend, place) as store:
        scope = Scope(order.user, "shared")
        await store.count(scope)  # connected, before the clock starts
        _wait_for_the_others()
        say(await work_on_store(store, scope, order.agent, order.count))


def _wait_for_the_others() -> None:
    say("ready")
    sys.stdin.buffer.readline()


if __name__ == "__main__":
    main()
