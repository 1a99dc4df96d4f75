"""Benchmarks: one process measures what calls cost, and tables show it.

An experiment measures what a memory finds, cell by cell. A benchmark measures what a call costs,
next to an alternative on the same machine. The same command runs, saves and shows both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from .options import Flags

Raw: TypeAlias = dict[str, Any]  # all raw figures, as plain values


@dataclass
class Run:
    """What a benchmark receives besides its options.

    ``before`` holds the figures of the last run, so that a partial run can keep the rest.
    """

    data_path: Path | None = None
    quick: bool = False
    before: Mapping[str, Any] = field(default_factory=dict)
    say: Callable[[str], None] = lambda line: None


@dataclass(frozen=True)
class Grid:
    """A title, column heads and rows of text; the first ``names`` columns are names."""

    title: str
    names: int
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


@dataclass(frozen=True)
class Chart:
    """Bars or curves of a benchmark: one panel per title, one colour per series.

    ``bars``: one value for each of ``names``. ``curves``: a list of values over ``x``; curves of
    the same name are repeated runs.
    """

    name: str
    title: str
    panels: Mapping[str, Mapping[str, Sequence[float]]]
    names: Sequence[str] = ()  # names of the bars
    x: Sequence[float] = ()
    x_label: str = ""
    y_label: str = ""
    diagonal: bool = False  # draw the diagonal on which both axes are equal


@dataclass(frozen=True)
class Benchmark:
    """What is measured, and how the raw figures are shown."""

    name: str
    about: str
    options: type[Flags]
    measure: Callable[[Any, Run], Raw]
    tables: Callable[[Mapping[str, Any]], Sequence[Grid]]
    charts: Callable[[Mapping[str, Any]], Sequence[Chart]] = lambda raw: ()
    notes: str = ""
    packages: tuple[str, ...] = ()  # packages whose versions affect the figures


def compared_grid(
    title: str, rows: Sequence[Mapping[str, Any]], theirs: str, ours: str, note: str = ""
) -> Grid:
    """Return the table of cases that two packages ran side by side."""
    from statistics import median

    from .timing import duration

    body = [
        (
            row["case"],
            *(duration(median(row["seconds"][side])) for side in (theirs, ours)),
            f"{row['ratio']:.1f}×",
            "" if row.get("target") is None else f"≥ {row['target']}×",
        )
        for row in rows
    ]
    return Grid(title, 1, ("case", theirs, ours, "ratio", "target"), tuple(body), note)
