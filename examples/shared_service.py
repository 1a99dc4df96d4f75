"""One database shared by several services and processes: each sees what the others write.

    pip install 'memoryspace[sql]'

This uses a SQLite file. For PostgreSQL, MySQL, MariaDB or Redis, only the address changes.
"""

import asyncio
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from memoryspace.errors import VersionConflict
from memoryspace.service import MemoryService, MemoryServiceFactory, SQLMemoryService

USER = "ann"
MESSAGES = 20


async def main() -> None:
    """Run the example: two services in this process, later one in another."""
    with TemporaryDirectory() as folder:
        url = f"sqlite+aiosqlite:///{Path(folder) / 'memory.db'}"
        async with SQLMemoryService(url) as desk, SQLMemoryService(url) as phone:
            await read_each_other(desk, phone)
            await race(desk, phone)
            print("all from both:", await write_at_once(desk, phone))
            print(await in_another_process(url), end="")
            print("and seen here:", await texts(phone, "ferry"))
            await desk.delete_memory(USER)
            print("deleted there, found here:", await texts(phone, "ferry Oslo number"))


async def texts(service: MemoryService, query: str) -> list[str]:
    """Return the texts that a search finds."""
    return [hit.memory.text for hit in await service.search(USER, query, neighbours=False)]


async def read_each_other(desk: MemoryService, phone: MemoryService) -> None:
    """A search sees every acknowledged write of any process."""
    await desk.add_memory(USER, ["I live in Rome"])
    print("said at the desk, found on the phone:", await texts(phone, "Rome"))


async def race(desk: MemoryService, phone: MemoryService) -> None:
    """Two concurrent updates of one version: one succeeds, the other raises."""
    [memory] = (await desk.page(USER)).memories
    changes = [
        service.update(USER, memory.id, f"I live in {city}", version=memory.version)
        for service, city in ((desk, "Oslo"), (phone, "Bergen"))
    ]
    results = await asyncio.gather(*changes, return_exceptions=True)
    late = [result for result in results if isinstance(result, VersionConflict)]
    print(f"two changes at once: {len(results) - len(late)} made, {len(late)} told it was late")


async def write_at_once(desk: MemoryService, phone: MemoryService) -> int:
    """Concurrent writes to one session lose nothing."""
    await asyncio.gather(
        *(
            service.add_memory(USER, [f"number {number}"], "numbers")
            for number in range(MESSAGES)
            for service in (desk, phone)
        )
    )
    return await desk.count(USER, {"session_id": "numbers"})


async def in_another_process(url: str) -> str:
    """Run this file as another process, configured by its environment; return its output."""
    options = {
        "MEMORY_BACKEND": "sql",
        "MEMORY_SQL_BIND": url,
        "MEMORY_SQL_EMBEDDER": "none",  # word search is enough here, and starts faster
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        __file__,
        "visit",
        env={**os.environ, **options},
        stdout=asyncio.subprocess.PIPE,
    )
    said, _ = await process.communicate()
    assert process.returncode == 0
    return said.decode()


async def visit() -> None:
    """Run in the other process: open the service that the environment names."""
    service = await MemoryServiceFactory.create()
    try:
        print("the other process finds", await service.count(USER), "memories")
        await service.add_memory(USER, ["The ferry leaves at nine"])
    finally:
        await service.stop()


if __name__ == "__main__":
    asyncio.run(visit() if "visit" in sys.argv[1:] else main())
