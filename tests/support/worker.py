"""A process that adds messages to one session: python worker.py SHELF URL USER FIRST COUNT."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from memoryspace import AsyncSQLAlchemyMemory, MemoryBase, Msg, RedisMemory


@asynccontextmanager
async def memory_at(backend: str, url: str, user: str) -> AsyncIterator[MemoryBase]:
    if backend == "redis":
        from redis.asyncio import Redis

        client = Redis.from_url(url)
        yield RedisMemory("session", user, client=client)
        await client.aclose()
        return
    from sqlalchemy.ext.asyncio import create_async_engine

    engine = create_async_engine(url)
    yield AsyncSQLAlchemyMemory(engine, "session", user)
    await engine.dispose()


async def main(backend: str, url: str, user: str, first: int, count: int) -> None:
    async with memory_at(backend, url, user) as memory:
        for number in range(first, first + count):
            await memory.add(Msg("worker", str(number), "user"), marks=f"from {first}")


if __name__ == "__main__":
    backend, url, user, first, count = sys.argv[1:]
    asyncio.run(main(backend, url, user, int(first), int(count)))
