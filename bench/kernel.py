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
import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kernel_collection import collection, generations
from kernel_faces import faces
from kernel_heap import heap
from kernel_journal import journal
from kernel_memory import memory
from kernel_objects import batches, objects, slope
from kernel_recovery import recovery
from kernel_report import table
from kernel_tiers import cold, paging

RESULTS = Path(__file__).parent.parent / "results"

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
    options = parser.parse_args()
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
