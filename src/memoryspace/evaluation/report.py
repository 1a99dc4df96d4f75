"""Reports of a board run: a table as text, a file of figures, a file of raw ranks."""

from __future__ import annotations

import gzip
import json
import platform
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

from ..files import write_atomic
from .boards import METRICS, Result


def table(result: Result) -> str:
    """Return the figures as text: each arm on all questions, then the last arm by category."""
    names = ["n", *METRICS]
    rows = [["", *names]]
    rows += [[arm, *_cells(result.means(arm))] for arm in result.arms()]
    if len(result.categories()) > 1:
        best = result.arms()[-1]
        rows += [
            [f"  {category}", *_cells(result.means(best, category))]
            for category in result.categories()
        ]
    title = f"{result.board.about} ({result.embedder or 'no embedder'})"
    return "\n".join([title, *_aligned(rows)])


def save(result: Result, folder: Path) -> list[Path]:
    """Write figures and raw ranks; return the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    kind = "words" if result.embedder is None else _plain(result.embedder)
    figures = folder / f"{result.board.name}.{kind}.json"
    ranks = folder / f"{result.board.name}.{kind}.ranks.jsonl.gz"
    write_atomic(figures, json.dumps(summary(result), indent=1, ensure_ascii=False).encode())
    write_atomic(ranks, gzip.compress("".join(_lines(result)).encode(), mtime=0))
    return [figures, ranks]


def summary(result: Result) -> dict[str, object]:
    """Return all figures with the environment they were measured in."""
    return {
        "board": result.board.name,
        "about": result.board.about,
        "embedder": result.embedder,
        "memoryspace": version("memoryspace"),
        "python": platform.python_version(),
        "arms": {arm: result.means(arm) for arm in result.arms()},
        "categories": {
            category: {arm: result.means(arm, category) for arm in result.arms()}
            for category in result.categories()
        },
    }


def _lines(result: Result) -> Iterator[str]:
    for answer in result.answers:
        yield json.dumps(asdict(answer), ensure_ascii=False) + "\n"


def overview(folder: Path) -> str:
    """Return the fused figures of every run saved in a folder, as a Markdown table."""
    lines = [
        f"| data set | embedder | n | {' | '.join(METRICS)} |",
        f"|---|---|---|{'---|' * len(METRICS)}",
    ]
    for path in sorted(folder.glob("*.json")):
        found = json.loads(path.read_bytes())
        cells = _cells(found["arms"]["fused"])
        embedder = found["embedder"] or "none: words alone"
        lines.append(f"| {found['about']} | {embedder} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cells(means: dict[str, float]) -> list[str]:
    return [str(value) if name == "n" else f"{value:.3f}" for name, value in means.items()]


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if number else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def _plain(name: str) -> str:
    return "".join(sign if sign.isalnum() or sign in "-." else "-" for sign in name)
