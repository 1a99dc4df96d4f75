"""The cold tier against the raw engine, and the choice of objects to demote."""

from __future__ import annotations

import os
import random
import statistics
import time
from pathlib import Path
from typing import Any

from ....kernel import Durability, TieredMemoryManager, Tiering, open_cold
from ....kernel.tiers.replacement import POLICIES, make_policy
from .spaces import ROUNDS, SEED, cpu, folder


def cold(n: int) -> dict[str, Any]:
    """Time cold reads against the raw engine, and demotion in batches; measure bytes on disk."""
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
            n * 1100,
            folder=path,
            retriever=None,
            tiering=Tiering(flush_interval=None, max_dirty=1 << 30),
            durability=Durability(sync="os", checkpoint_bytes=1 << 40),
        )
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
    """Return hit rates and decisions per second of every policy on three traces; 5 % fit."""
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
