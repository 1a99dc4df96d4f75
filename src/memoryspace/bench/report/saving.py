"""What a run leaves behind: figures as CSV and JSON, raw ranks, plots, a page."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ...files import write_atomic
from ..harness.cells import Finished
from ..harness.data import Data
from ..harness.environment import environment
from ..harness.findings import Estimate, Findings
from ..harness.options import public
from . import tables
from .drawing import Picture
from .page import page

INTERVAL = (
    "95 %: Student's t over seeds; with one seed, what the cell gives of its own, if anything"
)


def save(
    found: Findings, data: Data, folder: Path, pictures: Sequence[Picture], no_plots: str
) -> Iterator[Path]:
    """Write everything; yield the files. Each is the old or the new one, never half of it."""
    name = found.experiment.name
    document = document_of(found, data)
    yield _write(folder / f"{name}.csv", csv_of(found).encode())
    yield _write(folder / f"{name}.json", _json(document))
    yield _write(folder / f"{name}.md", markdown_of(found).encode())
    if any(run.result.ranks for run in _runs(found)):
        yield _write(folder / "ranks.jsonl.gz", gzip.compress(ranks_of(found), mtime=0))
    for picture in pictures:
        yield _write(folder / f"{picture.name}.svg", picture.svg.encode())
        yield _write(folder / f"{picture.name}.png", picture.png)
    yield _write(folder / f"{name}.html", page(found, document, pictures, no_plots).encode())


def csv_of(found: Findings) -> str:
    """Return a line a cell: its parameters, its figures, then its timings."""
    runs = list(_runs(found))
    cell_names = dict.fromkeys(name for run in runs for name in run.cell)
    figures = dict.fromkeys(name for run in runs for name in run.result.figures)
    timings = dict.fromkeys(name for run in runs for name in run.result.timings)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*cell_names, *figures, *timings])
    for run in runs:
        writer.writerow(
            [
                *(run.cell.get(name) for name in cell_names),
                *(run.result.figures.get(name) for name in figures),
                *(run.result.timings.get(name) for name in timings),
            ]
        )
    return text.getvalue()


def markdown_of(found: Findings) -> str:
    """Return the tables and claims as a document, for others to quote from."""
    parts = [f"# {found.experiment.name}\n\n{found.experiment.about}\n"]
    for grid in tables.grids(found):
        note = f"\n{grid.note}\n" if grid.note else ""
        parts.append(f"## {grid.title}\n\n{tables.markdown(grid)}{note}")
    judged = {True: "holds", False: "does not hold", None: "was not measured"}
    lines = [f"- {text}: {judged[holds]}" for text, holds in tables.claims(found)]
    return "\n".join(parts + (["## Claims\n\n" + "\n".join(lines) + "\n"] if lines else []))


def document_of(found: Findings, data: Data) -> dict[str, Any]:
    """Return all there is to say, apart from raw ranks. What depends on the machine has "timed"."""
    return {
        "experiment": found.experiment.name,
        "about": found.experiment.about,
        "version": found.experiment.version,
        "options": {name: _plain(value) for name, value in public(data.options).items()},
        "data": {"label": data.label, "sha256": data.checksums},
        "interval": INTERVAL,
        "groups": [
            {
                "cell": dict(group.cell),
                "seeds": [run.cell.get("seed") for run in group.runs],
                "figures": {name: _estimate(each) for name, each in group.figures.items()},
                "published": dict(group.published),
                "series": [dict(run.result.series) for run in group.runs],
                "timed": {
                    "timings": {name: _estimate(each) for name, each in group.timings.items()},
                    "series": [dict(run.result.timed_series) for run in group.runs],
                    "seconds": [run.seconds for run in group.runs],
                },
            }
            for group in found.groups
        ],
        "published": [
            {"where": dict(each.where), "figures": dict(each.figures), "source": each.source}
            for each in found.experiment.published
        ],
        "claims": [{"claim": text, "holds": holds} for text, holds in tables.claims(found)],
        "skipped": [{"cell": dict(cell), "why": why} for cell, why in found.skipped],
        "environment": {
            **environment(),
            "commits": sorted({run.code for run in _runs(found)} - {""}),
        },
    }


def ranks_of(found: Findings) -> bytes:
    """Return a line a query, with the cell it was asked in."""
    lines = [
        json.dumps({"cell": run.cell, **asdict(asked)}, ensure_ascii=False)
        for run in _runs(found)
        for asked in run.result.ranks
    ]
    return ("\n".join(lines) + "\n").encode()


def _runs(found: Findings) -> Iterator[Finished]:
    for group in found.groups:
        yield from group.runs


def _estimate(each: Estimate) -> dict[str, Any]:
    return {
        "mean": each.mean,
        "n": each.n,
        "low": each.low,
        "high": each.high,
        "values": list(each.values),
    }


def _plain(value: Any) -> Any:
    """A path says where somebody's files are, which is nobody's business."""
    return value.name if isinstance(value, Path) else value


def _json(document: dict[str, Any]) -> bytes:
    return json.dumps(document, indent=1, ensure_ascii=False).encode() + b"\n"


def _write(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, data)
    return path
