"""Durable puts: one by one against append + fdatasync, and by many concurrent writers."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any

from ....kernel import AsyncMemoryManager, MemoryManager, WriteAheadLog
from ...harness.measuring import percentile
from .spaces import folder, seconds_of


def journal(n: int) -> dict[str, Any]:
    """Time durable puts against append + fdatasync, group commit, and the journal in a store."""
    payload = os.urandom(1000)
    singles, raws = [], []
    sync = getattr(os, "fdatasync", os.fsync)
    with folder() as path:
        log = WriteAheadLog(Path(path) / "log", sync="always")
        file = os.open(Path(path) / "raw", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        for _ in range(n):
            started = time.perf_counter()
            os.write(file, payload)
            sync(file)
            raws.append(time.perf_counter() - started)
            started = time.perf_counter()
            log.commit(log.append(payload))
            singles.append(time.perf_counter() - started)
        os.close(file)
        log.close()
    single = n / sum(singles)
    found: dict[str, Any] = {
        "single_p50_us": percentile(sorted(singles), 50) * 1e6,
        "raw_p50_us": percentile(sorted(raws), 50) * 1e6,
        "single_vs_raw": percentile(sorted(singles), 50) / percentile(sorted(raws), 50),
        "single_per_s": single,
    }
    single_store = _thread_rate(1, n)
    for tasks in (16, 256):
        each = max(8, 8 * n // tasks)
        found[f"async_{tasks}"] = _async_log_rate(payload, tasks, each) / single
        found[f"async_stores_{tasks}"] = _async_rate(tasks, each) / single_store
    found["threads_16"] = _log_rate(payload, 16, max(20, n // 8)) / single
    found["thread_stores_16"] = _thread_rate(16, max(20, n // 8)) / single_store
    return found


def _async_log_rate(payload: bytes, tasks: int, each: int) -> float:
    """Return the durable puts per second of tasks that share a journal."""

    async def work(log: WriteAheadLog) -> None:
        for _ in range(each):
            await log.commit_async(log.append(payload))

    async def run(log: WriteAheadLog) -> float:
        started = time.perf_counter()
        await asyncio.gather(*(work(log) for _ in range(tasks)))
        return tasks * each / (time.perf_counter() - started)

    with folder() as path, WriteAheadLog(Path(path) / "log", sync="always") as log:
        return asyncio.run(run(log))


def _log_rate(payload: bytes, threads: int, each: int) -> float:
    """Return the durable puts per second of threads that share a journal."""
    with folder() as path, WriteAheadLog(Path(path) / "log", sync="always") as log:

        def work() -> None:
            for _ in range(each):
                log.commit(log.append(payload))

        return threads * each / seconds_of(work, threads)


def _async_rate(tasks: int, each: int) -> float:
    async def work(space: AsyncMemoryManager[MemoryManager]) -> None:
        for _ in range(each):
            await space.store({"text": "x" * 900})

    async def run(path: str) -> float:
        space = MemoryManager(1 << 30, folder=path, retriever=None)
        async with AsyncMemoryManager(space) as facade:
            started = time.perf_counter()
            await asyncio.gather(*(work(facade) for _ in range(tasks)))
            return tasks * each / (time.perf_counter() - started)

    with folder() as path:
        return asyncio.run(run(path))


def _thread_rate(threads: int, each: int) -> float:
    with folder() as path, MemoryManager(1 << 30, folder=path, retriever=None) as space:

        def work() -> None:
            for _ in range(each):
                space.store({"text": "x" * 900})

        return threads * each / seconds_of(work, threads)
