"""Saved results, read back from JSON to redraw or inspect them; nothing is run.

Example::

    found = read_findings(Path("results/bench"), "capacity-sweep")
    found.mean("hit@1", {"setting": "fair", "system": "tiered", "capacity": 65_536})

In a notebook, ``Redrawn(found)`` as the last line of a cell shows claims, tables and plots.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import CorruptData, InvalidInput
from ...files import write_atomic
from .. import catalogue
from ..harness.cells import Finished
from ..harness.experiment import CellResult
from ..harness.findings import Estimate, Findings, Group, estimate_of
from .drawing import NoPlots, Picture, draw
from .page import claims_list, figure_of, table_of
from .saving import SERIES, json_of, judged, save_pages
from .tables import grids


def read_document(results: Path, name: str) -> dict[str, Any]:
    """Return the content of ``NAME.json``."""
    path = results / name / f"{name}.json"
    if not path.is_file():
        raise InvalidInput(
            f"there are no results of {name} at {path}; run memoryspace bench {name}"
        )
    try:
        found: dict[str, Any] = json.loads(path.read_bytes())
    except ValueError as error:
        raise CorruptData(f"{path} is malformed ({error}): run it again") from error
    return found


def read_findings(results: Path, name: str) -> Findings:
    """Return the findings of a run without raw ranks; with curves where they were saved."""
    document = read_document(results, name)
    try:
        curves = _series(results / name / SERIES, len(document["groups"]))
        pairs = zip(document["groups"], curves, strict=True)
        groups = tuple(_group(each, series) for each, series in pairs)
        skipped = tuple((each["cell"], each["why"]) for each in document["skipped"])
    except (KeyError, TypeError) as error:
        raise CorruptData(f"the JSON of {name} lacks {error}: run it again") from error
    return Findings(catalogue.experiment(name), groups, skipped)


def remake(results: Path, name: str) -> Iterator[Path]:
    """Rebuild an experiment's document, plots and page from its figures; yield the paths.

    A plot whose curves were not saved stays as it is.
    """
    document, found = read_document(results, name), read_findings(results, name)
    document["claims"] = judged(found)
    write_atomic(results / name / f"{name}.json", json_of(document))
    drawn = draw(found)
    if isinstance(drawn, NoPlots):
        raise InvalidInput(drawn.reason)
    names = {picture.name for picture in drawn}
    kept = [
        Picture(plot.name, plot.title, path.read_text("utf-8"), b"", plot.caption)
        for plot in found.experiment.plots
        if plot.name not in names and (path := results / name / f"{plot.name}.svg").is_file()
    ]
    yield from save_pages(found, document, results / name, [*drawn, *kept], "")


@dataclass(frozen=True)
class Redrawn:
    """Findings with a rich display in notebooks."""

    findings: Findings

    def pictures(self) -> list[Picture]:
        """Return every plot, redrawn."""
        drawn = draw(self.findings)
        if isinstance(drawn, NoPlots):
            raise InvalidInput(drawn.reason)
        return drawn

    def _repr_html_(self) -> str:
        shown = [*claims_list(self.findings)]
        shown += [part for grid in grids(self.findings) for part in table_of(grid)]
        shown += [part for each in self.pictures() for part in figure_of(each)]
        return "\n".join(shown)


def _series(path: Path, groups: int) -> list[dict[str, Any]]:
    """Return the curves of each group; none if the file is missing."""
    if not path.is_file():
        return [{}] * groups
    found: list[dict[str, Any]] = json.loads(path.read_bytes())["groups"]
    return found


def _group(told: Mapping[str, Any], curves: Mapping[str, Any]) -> Group:
    timed = told["timed"]
    none: list[dict[str, Any]] = [{} for _ in told["seeds"]]
    runs = tuple(
        Finished(
            "",
            {**told["cell"], **({} if seed is None else {"seed": seed})},
            CellResult({}, series=series, timed_series=timed_series),
            seconds,
        )
        for seed, series, timed_series, seconds in zip(
            told["seeds"],
            curves.get("series", none),
            curves.get("timed", none),
            timed["seconds"],
            strict=True,
        )
    )
    return Group(
        told["cell"],
        runs,
        {name: _estimate(name, each) for name, each in told["figures"].items()},
        {name: _estimate(name, each) for name, each in timed["timings"].items()},
        told["published"],
    )


def _estimate(name: str, told: Mapping[str, Any]) -> Estimate:
    own = None if told["low"] is None else (told["low"], told["high"])
    return estimate_of(name, tuple(told["values"]), own)
