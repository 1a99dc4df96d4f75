"""Measurements of a run: percentiles of times, rates, bytes in memory and on disk."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

_STATM = Path("/proc/self/statm")
_IO = Path("/proc/self/io")


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Return the smallest value of a sorted list that covers this percentage of all values."""
    return ordered[max(1, math.ceil(len(ordered) * percent / 100)) - 1]


def spread(name: str, seconds: Iterable[float], *, unit: str = "us") -> dict[str, float]:
    """Return the median, 99th percentile and maximum of times, under names with this prefix."""
    scale = {"us": 1e6, "ms": 1e3, "s": 1.0}[unit]
    ordered = sorted(seconds)
    if not ordered:
        return {}
    return {
        f"{name}_p50_{unit}": percentile(ordered, 50) * scale,
        f"{name}_p99_{unit}": percentile(ordered, 99) * scale,
        f"{name}_max_{unit}": ordered[-1] * scale,
    }


def histogram(values: Iterable[float]) -> tuple[list[float], list[float]]:
    """Return the upper bounds of bins, four per doubling, and the count in each."""
    bins = Counter(math.ceil(math.log2(value) * 4) for value in values if value > 0)
    if not bins:
        return [], []
    span = range(min(bins), max(bins) + 1)
    return [2.0 ** (place / 4) for place in span], [float(bins[place]) for place in span]


def resident_bytes() -> int:
    """Return this process's resident memory; where unavailable, its peak."""
    if _STATM.exists():
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def disk_bytes(folder: Path) -> int:
    """Return the total length of the files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def device_bytes() -> int:
    """Return the bytes this process has written to disk; 0 where unavailable."""
    try:
        lines = _IO.read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("write_bytes")), 0)
