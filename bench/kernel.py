"""The memory space measured beside its limits: a dict of bytes, a raw file, a raw engine.

    python bench/kernel.py                  everything (some minutes)
    python bench/kernel.py --quick          a tenth of the sizes
    python bench/kernel.py --only gc cold   some parts

Ours and the reference run in the same process, in turns; a ratio is the median of the rounds. CPU
work is timed in CPU time, waiting for a disk in wall time. Raw figures go to results/kernel.json,
the table to results/kernel.md. What the prototype that this replaces ("seed") reached at 100k
objects, of a dict of bytes: 1/88 for store, 1/1490 for free, 1/1450 for churn; it collected 250
objects a second, and took 2.77 s to write and 2.65 s to load a checkpoint.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import platform
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from memoryspace.events import EventStream
from memoryspace.kernel import (
    AsyncMemoryManager,
    BestFitAllocator,
    CheckpointManager,
    Durability,
    FirstFitAllocator,
    GenerationalCollector,
    MemoryManager,
    MemoryProfiler,
    MemorySpace,
    SegregatedFitAllocator,
    TieredMemoryManager,
    WriteAheadLog,
    open_cold,
)
from memoryspace.kernel.heap import Heap
from memoryspace.kernel.replacement import POLICIES, make_policy
from memoryspace.testing import ManualClock

from kernel_report import table

RESULTS = Path(__file__).parent.parent / "results"
ROUNDS = 3
SEED = 20261116

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


def words(rng: random.Random, count: int) -> list[str]:
    """Words of a made-up language, as frequent as words are."""
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    vocabulary = sorted(
        {
            "".join(rng.choices(letters, range(26, 0, -1), k=rng.randint(2, 10)))
            for _ in range(40_000)
        }
    )
    rng.shuffle(vocabulary)
    return rng.choices(vocabulary, [1 / (rank + 3) for rank in range(len(vocabulary))], k=count)


def texts(count: int, median: float, seed: int = SEED) -> list[str]:
    """Texts with log-normal lengths around a median."""
    rng = random.Random(seed)
    pool = words(rng, 1_000_000)
    found = []
    for _ in range(count):
        size = min(20_000, max(50, int(rng.lognormvariate(0, 1) * median)))
        start = rng.randrange(len(pool) - 4000)
        found.append(" ".join(pool[start : start + max(4, size // 6)])[:size])
    return found


@contextmanager
def cpu() -> Iterator[Callable[[], float]]:
    """Time in CPU seconds of this process."""
    started = time.process_time()
    ended: list[float] = []
    yield lambda: (ended[0] if ended else time.process_time()) - started
    ended.append(time.process_time())


def percentile(values: list[float], percent: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="memoryspace-bench-")


def space_in(path: str, **options: Any) -> MemoryManager:
    options.setdefault("durability", Durability(sync="group:50", checkpoint_bytes=1 << 40))
    return MemoryManager(1 << 31, folder=path, **options)


# -- parts -----------------------------------------------------------------------------------------


def objects(n: int) -> dict[str, Any]:
    """Store, load, free and churn against a dict of encoded bytes."""
    payloads = [{"text": text} for text in texts(n, 430)]
    rounds = [_objects_round(payloads, searchable) for _ in range(ROUNDS) for searchable in (1, 0)]
    return {
        "n": n,
        "payload_bytes": statistics.mean(len(each["text"]) for each in payloads),
        "searchable": rounds[::2],
        "plain": rounds[1::2],
    }


def _objects_round(payloads: list[dict[str, str]], searchable: int) -> dict[str, float]:
    rng, n = random.Random(SEED), len(payloads)
    reference: dict[int, bytes] = {}
    with cpu() as dict_store:
        for number, payload in enumerate(payloads):
            reference[number] = _encode(payload)
    with folder() as path, space_in(path, retriever="sparse" if searchable else None) as space:
        ids, latencies = [], []
        clock = time.perf_counter
        with cpu() as store:
            for payload in payloads:
                started = clock()
                ids.append(
                    space.store(payload, tags=("note",), importance=0.4, tenant="u", root=True).id
                )
                latencies.append(clock() - started)
        order = list(range(n))
        rng.shuffle(order)
        with cpu() as dict_load:
            for number in order:
                _decode(reference[number])
        with cpu() as load:
            for number in order:
                _ = space.load(ids[number]).payload
        half, rest = order[: n // 2], order[n // 2 :]
        with cpu() as dict_free:
            for number in half:
                del reference[number]
        with cpu() as free:
            for number in half:
                space.free_object(ids[number])
        with cpu() as dict_churn:
            for number in rest:
                del reference[number]
                reference[number] = _encode(payloads[number])
        with cpu() as churn:
            for number in rest:
                space.free_object(ids[number])
                ids[number] = space.store(payloads[number], root=True).id
    return {
        "store_per_s": n / store(),
        "store_vs_dict": store() / dict_store(),
        "store_p99_ms": percentile(latencies, 99) * 1e3,
        "store_max_ms": max(latencies) * 1e3,
        "load_per_s": n / load(),
        "load_vs_dict": load() / dict_load(),
        "free_per_s": n / 2 / free(),
        "free_vs_dict": free() / dict_free(),
        "churn_per_s": n / 2 / churn(),
        "churn_vs_dict": churn() / dict_churn(),
    }


def batches(n: int) -> dict[str, Any]:
    """``store_many`` by 256, searchable, against the dict."""
    from memoryspace.kernel import NewObject

    payloads = [{"text": text} for text in texts(n, 430)]
    found = []
    for _ in range(ROUNDS):
        reference: dict[int, bytes] = {}
        with cpu() as dict_store:
            for number, payload in enumerate(payloads):
                reference[number] = _encode(payload)
        with folder() as path, space_in(path) as space, cpu() as store:
            for start in range(0, n, 256):
                space.store_many(
                    [
                        NewObject(each, tags=("note",), root=True)
                        for each in payloads[start : start + 256]
                    ]
                )
        found.append({"store_per_s": n / store(), "store_vs_dict": store() / dict_store()})
    return {"n": n, "rounds": found}


def slope(n: int) -> dict[str, Any]:
    """What one operation costs in a space of 10k and of 1M objects."""
    found = {}
    for size in (n // 100, n):
        found[size] = _cost_at(size)
    small, large = found.values()
    return {"cost_us": found, "ratio": {name: large[name] / small[name] for name in small}}


def _cost_at(size: int) -> dict[str, float]:
    rng = random.Random(SEED)
    payload = {"text": "a memory of about one hundred bytes, as short notes are. " * 2}
    space = MemoryManager(1 << 30, retriever=None)
    ids = [space.store(payload, root=True).id for _ in range(size)]
    costs: dict[str, list[float]] = {"store": [], "load": [], "free": [], "churn": []}
    count = 2000
    for _ in range(7):
        picked = rng.sample(range(size), count)
        with cpu() as load:
            for number in picked:
                space.load(ids[number])
        with cpu() as churn:
            for number in picked:
                space.free_object(ids[number])
                ids[number] = space.store(payload, root=True).id
        with cpu() as store:
            fresh = [space.store(payload, root=True).id for _ in range(count)]
        with cpu() as free:
            for each in fresh:
                space.free_object(each)
        for name, taken in (("store", store), ("load", load), ("free", free), ("churn", churn)):
            costs[name].append(taken() / count * 1e6)
    with cpu() as stats:
        for _ in range(2000):
            space.stats()
    space.close()
    return {name: min(each) for name, each in costs.items()} | {"stats": stats() / 2000 * 1e6}


def heap(n: int) -> dict[str, Any]:
    """Allocate and free at 75 % fill against dict put and del; how far the heap spreads."""
    rng = random.Random(SEED)
    sizes = [min(20_000, max(50, int(rng.lognormvariate(6, 0.9)))) for _ in range(n)]
    total = sum(MemorySpace.block_size(size) for size in sizes)
    swaps = [(rng.randrange(n), rng.choice(sizes)) for _ in range(2 * n)]
    reference = dict.fromkeys(range(n), 0)
    found: dict[str, Any] = {}
    makers = (SegregatedFitAllocator, BestFitAllocator, FirstFitAllocator)
    for maker in makers:
        ratios = []
        for _ in range(ROUNDS if maker is SegregatedFitAllocator else 1):
            with cpu() as limit:
                for number, size in swaps:
                    del reference[number]
                    reference[number] = size
            space = MemorySpace(int(total / 0.75), maker())
            addresses = [space.allocate(size) for size in sizes]
            with cpu() as taken:
                for number, size in swaps:
                    space.deallocate(addresses[number])
                    addresses[number] = space.allocate(size)
            ratios.append(taken() / limit())
        found[maker.__name__] = {
            "pairs_per_s": 2 * n / taken(),
            "vs_dict": statistics.median(ratios),
            "high_water": space.high_water() / space.allocated(),
        }
        space.close()
    return found


def memory(n: int) -> dict[str, Any]:
    """Resident bytes per payload byte, in a process of its own."""
    found = {}
    for name, median in (("text", 430), ("short", 90)):
        command = [sys.executable, __file__, "--memory", str(n), str(median)]
        found[name] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return found


def measure_memory(n: int, median: float) -> dict[str, float]:
    payloads = texts(n, median)
    size = sum(len(each) for each in payloads)
    gc.collect()
    before = _resident()
    with MemoryManager(1 << 31) as space:
        for text in payloads:
            space.store({"text": text}, root=True)
        space.retrieve(payloads[0][:40])
        gc.collect()
        grown = _resident() - before
        started = time.process_time()
        gc.collect()
        collect = time.process_time() - started
    return {
        "vs_payload": grown / size,
        "extra_bytes": (grown - size) / n,
        "gc_collect_ms": collect * 1e3,
    }


def _resident() -> int:
    if os.path.exists("/proc/self/statm"):
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def collection(n: int) -> dict[str, Any]:
    """A cycle over many objects, 30 % garbage, in slices of 1 ms, while the program goes on."""
    rng = random.Random(SEED)
    shorts = texts(20_000, 90)
    space = MemoryManager(1 << 31, pause=0.001)
    ids = [
        space.store({"text": shorts[number % len(shorts)]}, root=number % 100 == 0).id
        for number in range(n)
    ]
    kept = int(n * 0.7)
    roots = range(0, kept, 100)
    for number in range(n):
        for _ in range(2):
            target = rng.randrange(kept if number < kept else n)
            space.add_reference(ids[number], ids[target])
    for number in range(kept):
        if number % 100:
            space.add_reference(ids[rng.choice(roots)], ids[number])
    for number in range(kept, n):
        if number % 100 == 0:
            space.remove_root(ids[number])
    python_gc = _collect_seconds()
    pauses, stores = [], []
    before = len(space)
    done, total = False, 0.0
    while not done:
        started = time.thread_time()
        done = space.gc_step()
        pauses.append(time.thread_time() - started)
        for _ in range(3):
            started = time.thread_time()
            new = space.store({"text": "said while the collector works"}, root=True)
            space.add_reference(new.id, ids[rng.randrange(kept)])
            stores.append(time.thread_time() - started)
            before += 1
    total = sum(pauses)
    freed = before - len(space)
    space.close()
    del space, new
    return {
        "n": n,
        "freed": freed,
        "pause_p99_ms": percentile(pauses, 99) * 1e3,
        "pause_max_ms": max(pauses) * 1e3,
        "slices": len(pauses),
        "total_s": total,
        "freed_per_s": freed / total,
        "vs_seed": freed / total / 250,
        "store_and_link_p99_us": percentile(stores, 99) * 1e6,
        "python_gc_ms": python_gc * 1e3,
        "python_gc_without_ms": _collect_seconds() * 1e3,
    }


def _collect_seconds() -> float:
    """How long CPython's own collector takes when it has nothing new to do."""
    gc.collect()
    with cpu() as seconds:
        gc.collect()
    return seconds()


def journal(n: int) -> dict[str, Any]:
    """Durable puts against append + fdatasync; group commit; the cost of the journal in a store."""
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
        "single_p50_us": percentile(singles, 50) * 1e6,
        "raw_p50_us": percentile(raws, 50) * 1e6,
        "single_vs_raw": percentile(singles, 50) / percentile(raws, 50),
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
    """Durable puts per second of tasks that share a journal."""

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
    """Durable puts per second of threads that share a journal."""
    with folder() as path, WriteAheadLog(Path(path) / "log", sync="always") as log:

        def work() -> None:
            for _ in range(each):
                log.commit(log.append(payload))

        return threads * each / _seconds_of(work, threads)


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

        return threads * each / _seconds_of(work, threads)


def _seconds_of(work: Callable[[], None], threads: int) -> float:
    """Run the same work in several threads; one that fails voids the measurement."""
    started = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(work) for _ in range(threads)]:
            done.result()
    return time.perf_counter() - started


def recovery(n: int) -> dict[str, Any]:
    """Replay against a raw checksum scan; a checkpoint's write, load, and longest stop."""
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
    }


def _no_spill(bodies: list[tuple[int, bytes]]) -> None:
    assert not bodies, "everything fits"


def _checkpoint_timing_stops(space: MemoryManager, stops: list[float]) -> None:
    """What ``checkpoint`` does, with the time under the lock noted."""
    writer = space.begin_checkpoint()
    while not writer.captured:
        started = time.thread_time()
        with space.writing:
            space.capture(writer)
        stops.append(time.thread_time() - started)
    space.finish_checkpoint(writer)
    with space.writing:
        space.conclude(writer)


def cold(n: int) -> dict[str, Any]:
    """Reading from the cold tier against the raw engine; demotion in batches; bytes on disk."""
    import lmdb

    rng = random.Random(SEED)
    bodies = [os.urandom(1000) for _ in range(2000)]
    found: dict[str, Any] = {}
    with folder() as path:
        storage = open_cold(Path(path) / "ours")
        for start in range(0, n, 1000):
            storage.save_many((key, bodies[key % 2000]) for key in range(start, start + 1000))
        raw = lmdb.open(str(Path(path) / "raw"), map_size=1 << 32, subdir=False)
        with raw.begin(write=True) as txn:
            for key in range(n):
                txn.put(key.to_bytes(8, "big"), bodies[key % 2000])
        keys = [rng.randrange(n) for _ in range(20_000)]
        ratios = []
        for _ in range(ROUNDS):
            with cpu() as limit:
                for key in keys:
                    with raw.begin() as txn:
                        txn.get(key.to_bytes(8, "big"))
            with cpu() as taken:
                for key in keys:
                    storage.load(key)
            ratios.append(taken() / limit())
        found["get_us"] = taken() / len(keys) * 1e6
        found["get_vs_raw"] = statistics.median(ratios)
        storage.close()
        raw.close()
    with folder() as path:
        space = TieredMemoryManager(
            n * 1100, folder=path, retriever=None, flush_interval=None,
            durability=Durability(sync="os", checkpoint_bytes=1 << 40), max_dirty=1 << 30,
        )  # fmt: skip
        ids = [space.store({"text": "x" * 900}).id for _ in range(n)]
        started = time.perf_counter()
        for start in range(0, n, 1000):
            space.demote_objects(ids[start : start + 1000])
        found["demoted_per_s"] = n / (time.perf_counter() - started)
        size = sum(file.stat().st_blocks * 512 for file in Path(path, "cold").rglob("*"))
        found["disk_vs_data"] = size / (n * 910)
        with cpu() as taken:
            for number in range(0, n, 7):
                space.peek(ids[number])
        found["peek_us"] = taken() / (n / 7) * 1e6
        space.close()
    return found


def paging(n: int) -> dict[str, Any]:
    """Hit rates and decisions a second of every policy on three traces; the cache holds 5 %."""
    keys = 100_000
    traces = _traces(n, keys)
    found: dict[str, Any] = {}
    for name in POLICIES:
        rates = {}
        taken_total = 0.0
        for trace_name, trace in traces.items():
            policy, hits = make_policy(name), 0
            with cpu() as taken:
                for key in trace:
                    if key in policy:
                        policy.touch(key)
                        hits += 1
                    else:
                        if len(policy) >= keys // 20:
                            policy.evict()
                        policy.add(key)
            rates[trace_name] = hits / len(trace)
            taken_total += taken()
        found[name] = {"hit_rate": rates, "per_s": 3 * n / taken_total}
    for trace_name in traces:
        best = max(found[name]["hit_rate"][trace_name] for name in POLICIES)
        found["arc"][f"behind_best_{trace_name}"] = best - found["arc"]["hit_rate"][trace_name]
    return found


def _traces(n: int, keys: int) -> dict[str, list[int]]:
    rng = random.Random(SEED)
    weights = [1 / (rank + 1) ** 0.9 for rank in range(keys)]
    zipf = rng.choices(range(keys), weights, k=n)
    scans = list(zipf)
    for start in range(0, n - 5000, n // 10):
        scans[start : start + 5000] = range(keys + start, keys + start + 5000)
    agent, newest, core = [], 0, keys // 100
    for _ in range(n):
        kind = rng.random()
        if kind < 0.30:
            newest += 1
            agent.append(core + newest)
        elif kind < 0.85:
            agent.append(core + max(1, newest - int(rng.paretovariate(0.6))))
        else:
            agent.append(rng.randrange(core))
    return {"zipf": zipf, "zipf_scans": scans, "agent": agent}


def faces(n: int) -> dict[str, Any]:
    """What the async face, more threads, and a profiler cost."""
    payload = {"text": "x" * 200}
    space = MemoryManager(1 << 30, retriever=None)
    facade = AsyncMemoryManager(space)
    one = space.store(payload).id

    async def loads() -> float:
        with cpu() as taken:
            for _ in range(n):
                await facade.load(one)
        return taken()

    differences = []
    for _ in range(ROUNDS):
        with cpu() as direct:
            for _ in range(n):
                space.load(one)
        differences.append((asyncio.run(loads()) - direct()) / n * 1e6)
    single, eight = _mixed(space, 1, n), _mixed(space, 8, n // 8)
    space.close()
    return {
        "async_load_extra_us": statistics.median(differences),
        "threads_8_vs_1": eight / single,
        "profiler_cost": statistics.median([_profiler_cost(n // 4) for _ in range(ROUNDS)]),
    }


def _mixed(space: MemoryManager, threads: int, each: int) -> float:
    def work() -> None:
        for _ in range(each):
            space.load(space.store({"text": "x" * 200}, root=True).id)

    return threads * each / _seconds_of(work, threads)


def _profiler_cost(n: int) -> float:
    """How much longer searchable stores and loads take with a profiler that writes JSONL."""
    payloads = [{"text": text} for text in texts(n, 430)]
    taken = []
    for profiled in (False, True):
        events = EventStream()
        with folder() as path, folder() as output:
            profiler = MemoryProfiler("bench", output) if profiled else None
            if profiler is not None:
                profiler.attach(events)
            with space_in(path, events=events) as space, cpu() as spent:
                for payload in payloads:
                    space.load(space.store(payload).id)
            if profiler is not None:
                profiler.close()
        taken.append(spent())
    return taken[1] / taken[0] - 1


def generations(n: int) -> dict[str, Any]:
    """A young collection costs what is due: the old are not looked at."""
    found = {}
    for old in (n // 10, n):
        clock = ManualClock()
        space = MemoryManager(
            1 << 30, retriever=None, collectors=[GenerationalCollector()], clock=clock
        )
        ids = [space.store({"k": number}, importance=1.0).id for number in range(old)]
        for _ in range(2):
            for each in ids:
                for _ in range(3):
                    space.load(each)
            clock.advance(301)
            space.run_gc()
        for number in range(1000):
            space.store({"young": number}, importance=0.0)
        clock.advance(4000)
        with cpu() as taken:
            freed = space.run_gc().freed
        found[old] = {"freed": freed, "ms": taken() * 1e3}
        space.close()
    return found


PARTS: dict[str, tuple[Callable[[int], dict[str, Any]], int]] = {
    "objects": (objects, 100_000),
    "batches": (batches, 100_000),
    "slope": (slope, 1_000_000),
    "heap": (heap, 100_000),
    "memory": (memory, 100_000),
    "gc": (collection, 1_000_000),
    "generations": (generations, 100_000),
    "journal": (journal, 400),
    "recovery": (recovery, 100_000),
    "cold": (cold, 100_000),
    "paging": (paging, 300_000),
    "faces": (faces, 40_000),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the sizes")
    parser.add_argument("--only", nargs="*", choices=list(PARTS), help="some parts")
    parser.add_argument("--memory", nargs=2, metavar=("N", "MEDIAN"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory:
        print(json.dumps(measure_memory(int(options.memory[0]), float(options.memory[1]))))
        return
    names = options.only if options.only else list(PARTS)
    path = RESULTS / "kernel.json"
    report = json.loads(path.read_text()) if path.exists() else {}
    for place, name in enumerate(names, 1):
        part, size = PARTS[name]
        size = size // 10 if options.quick else size
        print(f"[{place}/{len(names)}] {name} (n = {size})", flush=True)
        started = time.perf_counter()
        found = part(size)
        print(
            json.dumps(found, indent=1),
            f"\n  took {time.perf_counter() - started:.0f} s",
            flush=True,
        )
        if not options.quick:
            report[name] = found
            report["environment"] = {
                "python": platform.python_version(),
                "machine": platform.machine(),
                "cpus": os.cpu_count(),
            }
            path.write_text(json.dumps(report, indent=1) + "\n")
            path.with_suffix(".md").write_text(table(report))


if __name__ == "__main__":
    main()
