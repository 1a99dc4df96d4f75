"""Results read back from their JSON, to be drawn again or looked at: nothing is run.

    found = read_findings(Path("results/bench"), "capacity-sweep")
    found.mean("hit@1", {"setting": "fair", "system": "tiered", "capacity": 65_536})

In a notebook ``Redrawn(found)`` as the last line of a cell shows claims, tables and plots.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import CorruptData, InvalidInput
from .. import catalogue
from ..harness.cells import Finished
from ..harness.experiment import CellResult
from ..harness.findings import Estimate, Findings, Group
from .drawing import NoPlots, Picture, draw
from .page import claims_list, figure_of, table_of
from .tables import grids


def read_document(results: Path, name: str) -> dict[str, Any]:
    """Return what ``NAME.json`` says."""
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
    """Return the findings of a run, without its raw ranks."""
    document = read_document(results, name)
    try:
        groups = tuple(_group(each) for each in document["groups"])
        skipped = tuple((each["cell"], each["why"]) for each in document["skipped"])
    except (KeyError, TypeError) as error:
        raise CorruptData(f"the JSON of {name} lacks {error}: run it again") from error
    return Findings(catalogue.experiment(name), groups, skipped)


@dataclass(frozen=True)
class Redrawn:
    """Findings as a notebook shows them."""

    findings: Findings

    def pictures(self) -> list[Picture]:
        """Return every plot, drawn anew."""
        drawn = draw(self.findings)
        if isinstance(drawn, NoPlots):
            raise InvalidInput(drawn.reason)
        return drawn

    def _repr_html_(self) -> str:
        shown = [*claims_list(self.findings)]
        shown += [part for grid in grids(self.findings) for part in table_of(grid)]
        shown += [part for each in self.pictures() for part in figure_of(each)]
        return "\n".join(shown)


def _group(told: Mapping[str, Any]) -> Group:
    timed = told["timed"]
    runs = tuple(
        Finished(
            "",
            {**told["cell"], **({} if seed is None else {"seed": seed})},
            CellResult({}, series=series, timed_series=timed_series),
            seconds,
        )
        for seed, series, timed_series, seconds in zip(
            told["seeds"], told["series"], timed["series"], timed["seconds"], strict=True
        )
    )
    return Group(
        told["cell"],
        runs,
        {name: _estimate(each) for name, each in told["figures"].items()},
        {name: _estimate(each) for name, each in timed["timings"].items()},
        told["published"],
    )


def _estimate(told: Mapping[str, Any]) -> Estimate:
    return Estimate(told["mean"], told["low"], told["high"], tuple(told["values"]))
