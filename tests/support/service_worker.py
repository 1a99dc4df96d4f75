"""A process that remembers things: python service_worker.py BACKEND URL USER FIRST COUNT [HOW].

It says each number once its memory is acknowledged. ``derive`` makes a fact of each; ``hang`` says
a number when its memory stands in the store and waits to be thought about, and never goes on.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from memoryspace import Origin
from memoryspace.service import (
    RedisMemoryService,
    ServiceSettings,
    SpaceMemoryService,
    SQLMemoryService,
)
from memoryspace.service.deriving.contract import Add, Decision, Job, Known
from memoryspace.service.stored import StoredMemoryService
from memoryspace.service.values.memory import Draft

WORDS = ServiceSettings(embedder=None)


class Echo:
    """A deriver that makes one fact of each memory."""

    name, kinds, is_quick = "echo", ("fact",), True

    async def derive(self, job: Job, known: Known) -> list[Decision]:
        return [
            Add(
                Draft(
                    value=each.text,
                    text=each.text,
                    kind="fact",
                    origin=Origin(derived_from=(each.id,)),
                )
            )
            for each in job.memories
        ]


class Hanging(Echo):
    """A deriver that says what it is to think about and does not come to an end."""

    async def derive(self, job: Job, known: Known) -> list[Decision]:
        print(job.memories[0].text.split()[1], flush=True)
        await asyncio.Event().wait()
        return []


DERIVERS = {"derive": Echo, "hang": Hanging}


def service_on(
    backend: str, url: str, deriver: Echo | None = None, *, settings: ServiceSettings = WORDS
) -> StoredMemoryService:
    if backend == "redis":
        return RedisMemoryService(url, settings=settings, deriver=deriver)
    if backend == "space":
        return SpaceMemoryService(url, settings=settings, deriver=deriver)
    search: Any = "server" if backend == "postgres-server" else "process"
    return SQLMemoryService(url, search=search, settings=settings, deriver=deriver)


@asynccontextmanager
async def service_at(
    backend: str, url: str, deriver: Echo | None = None
) -> AsyncIterator[StoredMemoryService]:
    async with service_on(backend, url, deriver) as service:
        yield service


async def main(
    backend: str, url: str, user: str, first: int, count: int, deriver: Echo | None
) -> None:
    async with service_at(backend, url, deriver) as service:
        for number in range(first, first + count):
            await service.add_memory(user, [f"apple {number}"], f"session-{number % 7}")
            print(number, flush=True)


if __name__ == "__main__":
    backend, url, user, first, count, *how = sys.argv[1:]
    deriver = DERIVERS[how[0]]() if how else None
    asyncio.run(main(backend, url, user, int(first), int(count), deriver))
