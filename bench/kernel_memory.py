"""Resident bytes, each measurement in a process of its own: this file, run with n and a median."""

from __future__ import annotations

import gc
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from memoryspace.kernel import MemoryManager

from kernel_measuring import texts


def memory(n: int) -> dict[str, Any]:
    """Resident bytes per payload byte, in a process of its own."""
    found = {}
    for name, median in (("text", 430), ("short", 90)):
        command = [sys.executable, __file__, str(n), str(median)]
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


if __name__ == "__main__":
    print(json.dumps(measure_memory(int(sys.argv[1]), float(sys.argv[2]))))
