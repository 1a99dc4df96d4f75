"""Resident bytes, each measured in a process of its own: this module, run with n and a median."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import time
from typing import Any

from ....kernel import MemoryManager
from ...harness.measuring import resident_bytes
from .spaces import texts


def memory(n: int) -> dict[str, Any]:
    """Return resident bytes per payload byte, from a process of its own."""
    found = {}
    for name, median in (("text", 430), ("short", 90)):
        command = [sys.executable, "-m", __name__, str(n), str(median)]
        found[name] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return found


def measure_memory(n: int, median: float) -> dict[str, float]:
    """Return the overhead of objects of this median size, besides their payload."""
    payloads = texts(n, median)
    size = sum(len(each) for each in payloads)
    gc.collect()
    before = resident_bytes()
    with MemoryManager(1 << 31) as space:
        for text in payloads:
            space.store({"text": text}, root=True)
        space.retrieve(payloads[0][:40])
        gc.collect()
        grown = resident_bytes() - before
        started = time.process_time()
        gc.collect()
        collect = time.process_time() - started
    return {
        "vs_payload": grown / size,
        "extra_bytes": (grown - size) / n,
        "gc_collect_ms": collect * 1e3,
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(measure_memory(int(sys.argv[1]), float(sys.argv[2]))))
