"""A benchmark: one process measures what something costs, and tables show it.

An experiment asks what a memory finds, cell by cell; a benchmark asks what a call costs beside
something else on the same machine. Both are run, saved and shown by the same command.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from .options import Flags

Raw: TypeAlias = dict[str, Any]  # everything measured: plain values


@dataclass
class Run:
    """What a benchmark is given besides its options.

    ``before`` is what the last run measured, for a benchmark of parts to keep those it leaves out.
    """

    data_path: Path | None = None
    quick: bool = False
    before: Mapping[str, Any] = field(default_factory=dict)
    say: Callable[[str], None] = lambda line: None


@dataclass(frozen=True)
class Grid:
    """A title, the head of each column, rows of text; the first ``names`` columns are names."""

    title: str
    names: int
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


@dataclass(frozen=True)
class Chart:
    """Bars or curves of a benchmark: a panel for each title, a colour for each series.

    ``bars``: one value for each of ``names``; ``curves``: a list of values over ``x``, of which
    those of the same name are runs of one thing.
    """

    name: str
    title: str
    panels: Mapping[str, Mapping[str, Sequence[float]]]
    names: Sequence[str] = ()  # of the bars
    x: Sequence[float] = ()
    x_label: str = ""
    y_label: str = ""
    diagonal: bool = False  # the line on which both axes are equal


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
    packages: tuple[str, ...] = ()  # whose versions decide the figures


def compared_grid(
    title: str, rows: Sequence[Mapping[str, Any]], theirs: str, ours: str, note: str = ""
) -> Grid:
    """Return the table of cases that two packages did side by side."""
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
