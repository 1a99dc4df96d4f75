"""Two packages doing the same work in turns: what the benchmarks beside others share.

A figure is a time per call, a ratio is theirs over ours, and the median of the rounds counts.
"""

from __future__ import annotations

import json
import platform
import statistics
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

Timed = Callable[[Any], Awaitable[float]]


@dataclass(frozen=True)
class Case:
    """What is measured: ``run`` returns the seconds one call takes for a side."""

    name: str
    target: float | None
    run: Timed


async def measure(case: Case, theirs: Any, ours: Any, rounds: int) -> dict[str, Any]:
    """Run a case for both sides, in turns; each side has a ``name``."""
    times: dict[str, list[float]] = {theirs.name: [], ours.name: []}
    for _ in range(rounds):
        for side in (theirs, ours):
            times[side.name].append(await case.run(side))
    ratios = [a / b for a, b in zip(times[theirs.name], times[ours.name], strict=True)]
    return {
        "case": case.name,
        "target": case.target,
        "ratio": statistics.median(ratios),
        "ratios": ratios,
        "seconds": times,
    }


def table(rows: Sequence[dict[str, Any]], theirs: Any, ours: Any) -> list[str]:
    """Return the cases as lines of a table."""
    lines = [f"| case | {theirs.name} | {ours.name} | ratio | target |", "|---|---|---|---|---|"]
    for row in rows:
        times = [statistics.median(row["seconds"][side.name]) for side in (theirs, ours)]
        target = "" if row["target"] is None else f"≥ {row['target']}×"
        shown_times = " | ".join(map(shown, times))
        lines.append(f"| {row['case']} | {shown_times} | {row['ratio']:.1f}× | {target} |")
    return lines


def shown(seconds: float) -> str:
    return f"{seconds * 1e6:.1f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"


def environment(packages: Sequence[str]) -> dict[str, str]:
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "system": platform.platform(),
        **{name: version(name) for name in packages},
    }


def save(output: Path, document: dict[str, Any], text: str) -> None:
    """Keep the raw times as JSON, and beside it what was printed."""
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    output.with_suffix(".md").write_text(text + "\n")
