"""Objects against a dict of encoded bytes: store, load, free, churn; and how cost grows."""

from __future__ import annotations

import random
import statistics
import time
from typing import Any

import msgspec

from ....kernel import MemoryManager, NewObject
from ...harness.measuring import percentile
from .spaces import ROUNDS, SEED, cpu, folder, space_in, texts

encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder().decode


def objects(n: int) -> dict[str, Any]:
    """Time store, load, free and churn against a dict of encoded bytes."""
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
            reference[number] = encode(payload)
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
                decode(reference[number])
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
                reference[number] = encode(payloads[number])
        with cpu() as churn:
            for number in rest:
                space.free_object(ids[number])
                ids[number] = space.store(payloads[number], root=True).id
    return {
        "store_per_s": n / store(),
        "store_vs_dict": store() / dict_store(),
        "store_p99_ms": percentile(sorted(latencies), 99) * 1e3,
        "store_max_ms": max(latencies) * 1e3,
        "load_per_s": n / load(),
        "load_vs_dict": load() / dict_load(),
        "free_per_s": n / 2 / free(),
        "free_vs_dict": free() / dict_free(),
        "churn_per_s": n / 2 / churn(),
        "churn_vs_dict": churn() / dict_churn(),
    }


def batches(n: int) -> dict[str, Any]:
    """Time ``store_many`` in batches of 256, searchable, against the dict."""
    payloads = [{"text": text} for text in texts(n, 430)]
    found = []
    for _ in range(ROUNDS):
        reference: dict[int, bytes] = {}
        with cpu() as dict_store:
            for number, payload in enumerate(payloads):
                reference[number] = encode(payload)
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
    """Return the cost of one operation in spaces of 10k and of 1M objects."""
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
    count = min(2000, size)
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
