"""Agents that write at the same time: threads, tasks or processes over one backend or their own.

Each stores records of its own, numbered, reads each back, and notes how long it waited. As a
module it is one agent process: it says that it is ready, waits to be told to go, and reports.
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
    """What an agent process is to do."""

    agent: int
    count: int
    backend: str
    folder: str
    sync: str
    user: str = "agents"


class Worked(Struct):
    """When an agent began and ended, on a clock that processes share, and each wait."""

    began: float
    ended: float
    waits: list[float]
    wrong: int = 0  # read back, and not what was stored


def name_of(agent: int, number: int) -> str:
    """Return the name of a record: no two are the same."""
    return f"{agent:04}-{number:06}"


def text_of(name: str) -> str:
    """Return what it says."""
    return f"agent and number {name} " + "x" * 100


def open_space(folder: str, sync: str) -> MemoryManager:
    """Open the space that agents of one process share."""
    how = Durability(sync=sync)
    return MemoryManager(CAPACITY, folder=folder, durability=how, retriever=None)


def work(space: MemoryManager, agent: int, count: int) -> Worked:
    """Be an agent that may block."""
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
    """Be an agent that is a task."""
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
    """Be an agent that appends to a session that others append to as well."""
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
    """Let threads share a space."""
    together = Barrier(agents)

    def one(agent: int) -> Worked:
        together.wait()
        return work(space, agent, count)

    with open_space(folder, sync) as space, ThreadPoolExecutor(agents) as pool:
        return list(pool.map(one, range(agents)))


def in_tasks(folder: str, sync: str, agents: int, count: int) -> list[Worked]:
    """Let tasks of one loop share a space."""

    async def all_of_them() -> list[Worked]:
        async with AsyncMemoryManager(open_space(folder, sync)) as space:
            return await asyncio.gather(
                *(work_async(space, agent, count) for agent in range(agents))
            )

    return asyncio.run(all_of_them())


def ids_in_space(folder: str, sync: str) -> Sequence[str]:
    """Return the names of all records of a space that are whole, opened anew."""
    with open_space(folder, sync) as space:
        return [each.id for each in space.objects() if each.payload["text"] == text_of(each.id)]


async def ids_in_store(backend: str, place: str, user: str) -> Sequence[str]:
    """Return the names of all whole records of a session, in its order."""
    async with open_backend(backend, place) as store:
        found = await store.select(Scope(user, "shared"))
    return [each.id for each in found if each.text == text_of(each.id)]


async def forget(backend: str, place: str, user: str) -> None:
    """Leave nothing behind on somebody's server."""
    async with open_backend(backend, place) as store:
        await store.delete(Scope(user))


def main() -> None:
    """Be one agent process."""
    order = order_of(Order)
    if order.backend == SPACE:
        folder = str(Path(order.folder, f"agent-{order.agent}"))
        with open_space(folder, order.sync) as space:
            _wait_for_the_others()
            say(work(space, order.agent, order.count))
    else:
        asyncio.run(_on_store(order))


async def _on_store(order: Order) -> None:
    place = place_of(order.backend, order.folder)  # an address is no argument: others see those
    async with open_backend(order.backend, place) as store:
        scope = Scope(order.user, "shared")
        await store.count(scope)  # connected, before the time counts
        _wait_for_the_others()
        say(await work_on_store(store, scope, order.agent, order.count))


def _wait_for_the_others() -> None:
    say("ready")
    sys.stdin.buffer.readline()


if __name__ == "__main__":
    main()
