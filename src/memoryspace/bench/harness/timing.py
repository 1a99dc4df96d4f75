"""Timing: a single call, calls in turns, two packages side by side.

CPU time is for work in RAM, which waits for nothing but other programs; wall time is for work that
waits for a disk or a server. A ratio is theirs over ours; the median of the rounds counts.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

Clock: TypeAlias = Callable[[], float]
Call: TypeAlias = Callable[[], object]
AsyncCall: TypeAlias = Callable[[], Awaitable[object]]
Timed: TypeAlias = Callable[[Any], Awaitable[float]]  # returns the seconds of one call, for a side

CPU: Clock = time.process_time
WALL: Clock = time.perf_counter


def seconds(call: Call, clock: Clock = CPU) -> float:
    """Return the seconds that a call takes."""
    began = clock()
    call()
    return clock() - began


def in_turns(
    calls: Mapping[str, Call], rounds: int, *, repeats: int = 1, clock: Clock = CPU
) -> dict[str, list[float]]:
    """Return the seconds of each call per round; interleaving spreads slow moments over all.

    Each call is made ``repeats`` times in a row and the median counts, because the first ones run
    with cold CPU caches.
    """
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            times[name].append(statistics.median(seconds(call, clock) for _ in range(repeats)))
    return times


async def per_call(calls: Sequence[AsyncCall], clock: Clock = WALL) -> float:
    """Return the mean seconds of awaited calls, after a garbage collection."""
    gc.collect()
    began = clock()
    for call in calls:
        await call()
    return (clock() - began) / len(calls)


async def median_call(calls: Sequence[AsyncCall], clock: Clock = WALL) -> float:
    """Return the median seconds of an awaited call, after one warm-up call."""
    await calls[0]()
    times = []
    for call in calls:
        began = clock()
        await call()
        times.append(clock() - began)
    return statistics.median(times)


@dataclass(frozen=True)
class Case:
    """A task for two packages: ``run`` returns the seconds of one call for a side."""

    name: str
    target: float | None  # the target ratio
    run: Timed


async def side_by_side(case: Case, theirs: Any, ours: Any, rounds: int) -> dict[str, Any]:
    """Run a case for both sides in turns; each side has a ``name``."""
    times: dict[str, list[float]] = {theirs.name: [], ours.name: []}
    for _ in range(rounds):
        for side in (theirs, ours):
            times[side.name].append(await case.run(side))
    return {"case": case.name, "target": case.target, **compared(times, theirs.name, ours.name)}


def compared(times: Mapping[str, Sequence[float]], theirs: str, ours: str) -> dict[str, Any]:
    """Return the times of two sides, the ratio of each round, and the median ratio."""
    ratios = [a / b for a, b in zip(times[theirs], times[ours], strict=True)]
    return {"ratio": statistics.median(ratios), "ratios": ratios, "seconds": dict(times)}


def duration(seconds: float) -> str:
    """Return a time as readable text."""
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{seconds * 1e6:.1f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"


def rounded(value: float) -> float:
    """Return a number with three significant digits."""
    return float(f"{value:.3g}")
