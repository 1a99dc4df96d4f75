"""Files of an experiment: figures as CSV and JSON, raw ranks, plots, a page."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ...files import write_atomic
from ..harness.cells import Finished
from ..harness.data import SAMPLE, Data
from ..harness.environment import environment
from ..harness.findings import Estimate, Findings
from ..harness.options import public
from . import tables
from .drawing import Picture
from .page import page

SERIES = "series.json"
SAMPLE_SAID = "**a generated sample**, which says nothing about real data"
INTERVAL = (
    "95 %: Student's t over three seeds or more (±), or a bootstrap over the queries of one seed "
    "[from, to]. Where t would reach beyond what a figure can be, and with two seeds, the range of "
    "the seeds stands in its place (from–to)"
)


def save(
    found: Findings, data: Data, folder: Path, pictures: Sequence[Picture], no_plots: str
) -> Iterator[Path]:
    """Write all files, each atomically; yield the paths.

    Figures, tables and SVG are small and worth committing. Series, ranks, PNG and HTML are large,
    or can be rebuilt from the others with ``memoryspace bench pages``.
    """
    name = found.experiment.name
    document = document_of(found, data)
    yield _write(folder / f"{name}.csv", csv_of(found).encode())
    yield _write(folder / f"{name}.json", json_of(document))
    if any(run.result.series or run.result.timed_series for run in _runs(found)):
        yield _write(folder / SERIES, _json(series_of(found)))
    if any(run.result.ranks for run in _runs(found)):
        yield _write(folder / "ranks.jsonl.gz", gzip.compress(ranks_of(found), mtime=0))
    yield from save_pages(found, document, folder, pictures, no_plots)


def save_pages(
    found: Findings,
    document: Mapping[str, Any],
    folder: Path,
    pictures: Sequence[Picture],
    no_plots: str,
) -> Iterator[Path]:
    """Write what is derived from the figures: the document, the plots, the page."""
    name = found.experiment.name
    yield _write(folder / f"{name}.md", markdown_of(found, document).encode())
    for picture in pictures:
        yield _write(folder / f"{picture.name}.svg", picture.svg.encode())
        if picture.png:
            yield _write(folder / f"{picture.name}.png", picture.png)
    yield _write(folder / f"{name}.html", page(found, document, pictures, no_plots).encode())


def csv_of(found: Findings) -> str:
    """Return one line per cell: its parameters, its figures, then its timings."""
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


def markdown_of(found: Findings, document: Mapping[str, Any]) -> str:
    """Return the tables and claims as a document, for other documents to quote."""
    parts = [f"# {found.experiment.name}\n\n{found.experiment.about}\n\n{run_line(document)}\n"]
    for grid in tables.grids(found):
        note = f"\n{grid.note}\n" if grid.note else ""
        parts.append(f"## {grid.title}\n\n{tables.markdown(grid)}{note}")
    said = {True: "holds", False: "does not hold", None: "was not measured"}
    lines = [f"- {text}: {said[holds]}" for text, holds in tables.claims(found)]
    if lines:
        parts.append("## Claims\n\n" + "\n".join(lines) + "\n")
    return "\n".join([*parts, f"## How it was run\n\n{_how(document)}"])


def run_line(document: Mapping[str, Any]) -> str:
    """Return a sentence with the data, embedder, time and commit of the run."""
    label, where = document["data"]["label"], document["environment"]
    is_sample = label == SAMPLE and document["data"]["sha256"]
    source = SAMPLE_SAID if is_sample else "none" if label == SAMPLE else label
    ran = document.get("embedders", [])
    vectors = f" Embedder: {', '.join(ran)}." if ran else ""
    commit = (where.get("commit") or "unknown")[:8]
    return f"Data: {source}.{vectors} Run on {where['when'][:10]}, commit {commit}."


def _how(document: Mapping[str, Any]) -> str:
    where = document["environment"]
    packages = ", ".join(f"{name} {found}" for name, found in where["packages"].items())
    options = ", ".join(f"{name} {_listed(value)}" for name, value in document["options"].items())
    sums = [f"{name} ({digest[:12]})" for name, digest in document["data"]["sha256"].items()]
    lines = [
        f"Options: {options}.",
        *([f"Data files (SHA-256): {', '.join(sums)}."] if sums else []),
        f"{where['python']}, {where['cpu']}, {where['cores']} cores, {where['system']}.",
        f"Packages: {packages}.",
        f"Intervals: {INTERVAL}.",
    ]
    return "\n".join(f"- {line}" for line in lines) + "\n"


def _listed(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def document_of(found: Findings, data: Data) -> dict[str, Any]:
    """Return all figures. Those that depend on the machine are marked "timed"."""
    return {
        "experiment": found.experiment.name,
        "about": found.experiment.about,
        "version": found.experiment.version,
        "options": {name: _plain(value) for name, value in public(data.options).items()},
        "data": {"label": data.label, "sha256": data.checksums},
        "embedders": _embedders(found),
        "interval": INTERVAL,
        "groups": [
            {
                "cell": dict(group.cell),
                "seeds": [run.cell.get("seed") for run in group.runs],
                "figures": {name: _estimate(each) for name, each in group.figures.items()},
                "published": dict(group.published),
                "timed": {
                    "timings": {name: _estimate(each) for name, each in group.timings.items()},
                    "seconds": [run.seconds for run in group.runs],
                },
            }
            for group in found.groups
        ],
        "published": [
            {"where": dict(each.where), "figures": dict(each.figures), "source": each.source}
            for each in found.experiment.published
        ],
        "claims": judged(found),
        "skipped": [{"cell": dict(cell), "why": why} for cell, why in found.skipped],
        "environment": {
            **environment(),
            "commits": sorted({run.code for run in _runs(found)} - {""}),
        },
    }


def judged(found: Findings) -> list[dict[str, Any]]:
    """Return each claim, and whether it holds."""
    return [{"claim": text, "holds": holds} for text, holds in tables.claims(found)]


def series_of(found: Findings) -> dict[str, Any]:
    """Return the curves of each group, in the order of the figures."""
    return {
        "groups": [
            {
                "series": [dict(run.result.series) for run in group.runs],
                "timed": [dict(run.result.timed_series) for run in group.runs],
            }
            for group in found.groups
        ]
    }


def json_of(document: Mapping[str, Any]) -> bytes:
    """Return the figures as JSON, one group per line: compact, with readable diffs."""
    rest = {name: value for name, value in document.items() if name != "groups"}
    lines = ",\n".join(
        json.dumps(each, ensure_ascii=False, separators=(",", ":")) for each in document["groups"]
    )
    shown = json.dumps(rest, indent=1, ensure_ascii=False)
    return f'{shown[:-2]},\n "groups": [\n{lines}\n]}}\n'.encode()


def _embedders(found: Findings) -> list[str]:
    """Return the embedders that ran, by their own names."""
    named = [str(group.cell["embedder"]) for group in found.groups if group.cell.get("embedder")]
    return list(dict.fromkeys(named))


def ranks_of(found: Findings) -> bytes:
    """Return one line per query, with its cell."""
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
    """Return a plain value; of a path only the name, because folders are private."""
    return value.name if isinstance(value, Path) else value


def _json(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _write(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, data)
    return path
