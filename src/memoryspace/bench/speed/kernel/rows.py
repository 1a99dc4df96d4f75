"""Rows of the kernel's table, with the targets: one function per part."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

Row: TypeAlias = tuple[str, str, str]  # what, measured, target
Found: TypeAlias = dict[str, Any]


def _median(rounds: list[dict[str, float]], name: str) -> float:
    return statistics.median(each[name] for each in rounds)


def _objects(found: Found) -> Iterator[Row]:
    full, plain = found["searchable"], found["plain"]
    store = 88 / _median(full, "store_vs_dict")
    yield "store, searchable, journalled: of the seed's rate", f"{store:.1f}x", ">= 4x"
    yield "the same, a second", f"{_median(full, 'store_per_s'):,.0f}", ""
    yield "store p99", f"{_median(full, 'store_p99_ms'):.2f} ms", "<= 0.2 ms"
    yield "store, longest", f"{_median(full, 'store_max_ms'):.1f} ms", "<= 5 ms"
    load = 1 / _median(plain, "load_vs_dict")
    yield "load and decode: of a dict's rate", f"{load:.2f}x", ">= 0.5x"
    free, searchable = (1490 / _median(each, "free_vs_dict") for each in (plain, full))
    yield "free: of the seed's rate", f"{free:.0f}x", ">= 500x"
    yield "free, searchable: of the seed's rate", f"{searchable:.0f}x", ""
    churn = 1450 / _median(full, "churn_vs_dict")
    yield "churn, searchable: of the seed's rate", f"{churn:.0f}x", ">= 100x"


def _batches(found: Found) -> Iterator[Row]:
    store = 88 / _median(found["rounds"], "store_vs_dict")
    yield "store_many(256): of the seed's rate", f"{store:.1f}x", ">= 4x"


def _slope(found: Found) -> Iterator[Row]:
    for name, ratio in found["ratio"].items():
        yield f"{name} at 1M against 10k objects", f"{ratio:.2f}x", "<= 1.5x"


def _heap(found: Found) -> Iterator[Row]:
    default = found["SegregatedFitAllocator"]["vs_dict"]
    yield "allocate + free against dict put + del", f"{default:.1f}x", "<= 2x"
    for name, limit in (("SegregatedFitAllocator", "<= 1.10"), ("BestFitAllocator", "<= 1.05")):
        spread = found[name]["high_water"]
        yield f"{name}: high water over live bytes", f"{spread:.3f}", limit


def _memory(found: Found) -> Iterator[Row]:
    text, short = found["text"]["vs_payload"], found["short"]["extra_bytes"]
    yield "resident bytes over payload, with index", f"{text:.2f}x", "<= 2.5x"
    yield "bytes over a short payload", f"{short:.0f}", "<= 300"


def _gc(found: Found) -> Iterator[Row]:
    yield "GC pause p99 (budget 1 ms, 1M objects)", f"{found['pause_p99_ms']:.2f} ms", "<= 1.2 ms"
    yield "GC pause, longest", f"{found['pause_max_ms']:.2f} ms", "<= 2 ms"
    yield "GC, all slices", f"{found['total_s']:.2f} s", "<= 2 s"
    yield "objects collected: of the seed's rate", f"{found['vs_seed']:.0f}x", ">= 1000x"
    ours = found["python_gc_ms"] - found["python_gc_without_ms"]
    yield "CPython's own gc.collect(): because of the space", f"{ours:.1f} ms", "<= 5 ms"


def _journal(found: Found) -> Iterator[Row]:
    yield "durable put against append + fdatasync", f"{found['single_vs_raw']:.2f}x", "<= 1.1x"
    yield "16 async writers: of the single rate", f"{found['async_16']:.0f}x", ">= 12x"
    yield "256 async writers: of the single rate", f"{found['async_256']:.0f}x", ">= 100x"
    yield "16 threads: of the single rate", f"{found['threads_16']:.1f}x", ">= 4x"
    stores = [found[name] for name in ("async_stores_16", "async_stores_256", "thread_stores_16")]
    rates = " / ".join(f"{each:.1f}x" for each in stores)
    yield "the same three for whole stores, of a single store's rate", rates, ""


def _recovery(found: Found) -> Iterator[Row]:
    write, load = found["checkpoint_write_vs_seed"], found["checkpoint_load_vs_seed"]
    yield "replayed records a second", f"{found['replay_per_s']:,.0f}", ">= 150,000"
    yield "checkpoint write: seed's time over ours", f"{write:.1f}x", ">= 5x"
    indexed = found["load_with_index_vs_seed"]
    yield "checkpoint load: seed's time over ours", f"{load:.1f}x", ""
    yield "checkpoint load with the index: seed's time over ours", f"{indexed:.1f}x", ">= 50x"
    yield "checkpoint's longest stop", f"{found['longest_stop_ms']:.1f} ms", "<= 10 ms"


def _cold(found: Found) -> Iterator[Row]:
    yield "cold get against raw LMDB", f"{found['get_vs_raw']:.2f}x", "<= 3x"
    yield "demoted a second, by 1000", f"{found['demoted_per_s']:,.0f}", ">= 30,000"
    yield "cold tier on disk over data", f"{found['disk_vs_data']:.2f}x", "<= 2.4x"


def _paging(found: Found) -> Iterator[Row]:
    arc = found["arc"]
    behind = max(arc[name] for name in arc if name.startswith("behind_best"))
    yield "ARC decisions a second", f"{arc['per_s']:,.0f}", ">= 1,000,000"
    yield "ARC's hit rate behind the best policy", f"{behind:.3f}", "<= 0.02"


def _faces(found: Found) -> Iterator[Row]:
    yield "async face over the sync call", f"{found['async_load_extra_us']:.2f} us", "<= 1 us"
    yield "8 threads against 1", f"{found['threads_8_vs_1']:.2f}x", ">= 0.9x"
    yield "profiler's cost", f"{found['profiler_cost']:.0%}", "< 10 %"


ROWS: dict[str, Callable[[Found], Iterator[Row]]] = {
    "objects": _objects,
    "batches": _batches,
    "slope": _slope,
    "heap": _heap,
    "memory": _memory,
    "gc": _gc,
    "journal": _journal,
    "recovery": _recovery,
    "cold": _cold,
    "paging": _paging,
    "faces": _faces,
}
