"""Replay against a raw checksum scan; writing, loading and pauses of a checkpoint."""

from __future__ import annotations

import statistics
import time
import zlib
from pathlib import Path
from typing import Any

from ....kernel import CheckpointManager, MemoryManager
from ....kernel.heap.heap import Heap
from ....kernel.index.saved import SavedIndexes, reconcile
from .spaces import ROUNDS, cpu, folder, space_in, texts

_SEED_INDEX = 7.0  # seconds the seed took to rebuild its index after loading a checkpoint


def recovery(n: int) -> dict[str, Any]:
    """Time replay against a raw checksum scan; a checkpoint's write, load, and longest pause."""
    payloads = [{"text": text} for text in texts(n, 430)]
    with folder() as path:
        with space_in(path, retriever=None) as space:
            for payload in payloads:
                space.store(payload, tags=("note",), root=True)
        files = [file.read_bytes() for file in sorted(Path(path, "journal").glob("*.log"))]
        with cpu() as scan:
            for data in files:
                for start in range(0, len(data), 800):
                    zlib.crc32(data[start : start + 800])
        started = time.perf_counter()
        with cpu() as replay, space_in(path, retriever=None) as space:
            opened = time.perf_counter() - started
            stops: list[float] = []
            with cpu() as write:
                wall = time.perf_counter()
                _checkpoint_timing_stops(space, stops)
                wall = time.perf_counter() - wall
        loads = []
        for _ in range(ROUNDS):
            loaded_heap = Heap(1 << 31)
            started = time.perf_counter()
            CheckpointManager(Path(path, "checkpoints")).load(loaded_heap, _no_spill)
            loads.append(time.perf_counter() - started)
            assert loaded_heap.table.live == n
            loaded_heap.space.close()
        loaded = statistics.median(loads)
        started = time.perf_counter()
        with space_in(path, retriever=None) as space:
            reopened = time.perf_counter() - started
        with_index = _with_index(path, loaded)
    return {
        "n": n,
        "replay_per_s": n / opened,
        "replay_vs_scan": scan() / opened,
        "checkpoint_write_s": wall,
        "checkpoint_write_cpu_s": write(),
        "checkpoint_write_vs_seed": 2.77 / wall,
        "checkpoint_load_s": loaded,
        "checkpoint_load_vs_seed": 2.65 / loaded,
        "open_s": reopened,
        "longest_stop_ms": max(stops) * 1e3,
        "replay_cpu_s": replay(),
        **with_index,
    }


def _with_index(path: str, loaded: float) -> dict[str, float]:
    """Return the cost and gain of a saved index: it is built and saved once, then reused."""
    space = space_in(path)
    started = time.perf_counter()
    space.retrieve("something")
    built = time.perf_counter() - started
    started = time.perf_counter()
    space.close()
    saved = time.perf_counter() - started
    folder_of_index, opened = Path(path, "index"), []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        kept = SavedIndexes(folder_of_index).load(space.last_lsn)
        reconcile(kept, space.engine.heap.table)
        opened.append(time.perf_counter() - started)
    index = statistics.median(opened)
    started = time.perf_counter()
    with space_in(path) as space:
        everything = time.perf_counter() - started
        assert space.engine.search is not None
        assert not space.engine.search.has_backlog
    return {
        "index_build_s": built,
        "index_save_s": saved,
        "index_load_s": index,
        "load_with_index_vs_seed": (2.65 + _SEED_INDEX) / (loaded + index),
        "open_with_index_s": everything,
    }


def _no_spill(bodies: list[tuple[int, bytes]]) -> None:
    assert not bodies, "everything fits"


def _checkpoint_timing_stops(space: MemoryManager, stops: list[float]) -> None:
    """Do what ``checkpoint`` does, and record the time under the lock."""
    writer = space.engine.checkpointing.begin()
    while not writer.captured:
        started = time.thread_time()
        with space.engine.writing:
            space.engine.checkpointing.capture(writer)
        stops.append(time.thread_time() - started)
    space.engine.checkpointing.finish(writer)
    with space.engine.writing:
        space.engine.checkpointing.conclude(writer)
