"""Several processes on one store: of two changes of one version one wins, and nothing is missed.

Run as a script it is one of those processes: test_store_races.py DEED SHELF URL USER NUMBER COUNT
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from memoryspace import Record, RedisStore, Scope, SQLStore, Store, Where
from memoryspace.message import new_id
from memoryspace.testing.store_tools import Mirror

STORE_BACKENDS = ["sqlite", "postgres", "mariadb", "redis"]
COUNTER = "counter"


@asynccontextmanager
async def store_at(backend: str, url: str) -> AsyncIterator[Store]:
    async with RedisStore(url) if backend == "redis" else SQLStore(url) as store:
        yield store


def counter(value: int) -> Record:
    return Record(COUNTER, {"value": value}, kind="counter")


async def increment(store: Store, scope: Scope) -> None:
    """Add one to the counter, again and again until nobody else was faster."""
    while True:
        (found,) = await store.select(scope, Where(ids=frozenset({COUNTER})))
        this = Where(ids=frozenset({COUNTER}), after=found.seq - 1, before=found.seq + 1)
        assert isinstance(found.value, dict)
        new = counter(found.value["value"] + 1)
        if await store.replace(scope, this, [new], if_found=True):
            return


async def write(store: Store, user: str, number: int, step: int) -> None:
    """Append to one's own session and to one of all, and now and then take something away."""
    notes = [Record(f"{number} {step} {n}", {"n": n}, kind="note") for n in range(2)]
    await store.append(Scope(user, f"own {number}"), notes)
    await store.append(Scope(user, "shared"), notes[:1])
    if step % 5 == 4:
        old = frozenset({f"{number} {step - 2} 0"})
        await store.delete(Scope(user, f"own {number}"), Where(ids=old))
        await store.replace(Scope(user, "shared"), Where(ids=old), notes[1:], if_found=True)


async def main(deed: str, backend: str, url: str, user: str, number: int, count: int) -> None:
    async with store_at(backend, url) as store:
        for step in range(count):
            if deed == "increment":
                await increment(store, Scope(user, "session"))
            else:
                await write(store, user, number, step)


async def started(
    deed: str, backend: str, url: str, user: str, count: int
) -> list[asyncio.subprocess.Process]:
    return [
        await asyncio.create_subprocess_exec(
            sys.executable, __file__, deed, backend, url, user, str(number), str(count),
            stderr=asyncio.subprocess.PIPE,
        )
        for number in range(4)
    ]  # fmt: skip


async def ended(processes: list[asyncio.subprocess.Process]) -> None:
    for process in processes:
        _, errors = await process.communicate()
        assert process.returncode == 0, errors.decode()


def url_of(backend: str, folder: Path) -> str:
    from backends import server_url, sql_url

    return server_url("redis") if backend == "redis" else sql_url(backend, folder)


@pytest.mark.parametrize("backend", STORE_BACKENDS)
async def test_four_processes_count_to_a_hundred(backend: str, tmp_path: Path) -> None:
    url, user = url_of(backend, tmp_path), f"user-{new_id()}"
    async with store_at(backend, url) as store:
        scope = Scope(user, "session")
        await store.append(scope, [counter(0)])
        await ended(await started("increment", backend, url, user, 25))
        (found,) = await store.select(scope)
        assert found.value == {"value": 100}


@pytest.mark.parametrize("backend", STORE_BACKENDS)
async def test_a_reader_misses_nothing_of_what_four_processes_write(
    backend: str, tmp_path: Path
) -> None:
    url, user, mirror = url_of(backend, tmp_path), f"user-{new_id()}", Mirror()
    told: list[int] = []
    async with store_at(backend, url) as store:
        await store.changes(user)
        ending = asyncio.ensure_future(ended(await started("write", backend, url, user, 25)))
        while not ending.done():
            told += [each.seq for each in (await mirror.catch_up(store, user)).records]
            await asyncio.sleep(0)
        await ending
        told += [each.seq for each in (await mirror.catch_up(store, user)).records]
        found = await store.select(Scope(user))
        assert mirror.held() == [(each.seq, each.session, each.id) for each in found]
        assert len(found) == 4 * (25 * 3 - 5)  # five of each were taken from its own session
        assert len(told) == len(set(told))


if __name__ == "__main__":
    deed, backend, url, user, number, count = sys.argv[1:]
    asyncio.run(main(deed, backend, url, user, int(number), int(count)))
