"""The declaration of an experiment: what to run, and how to present the figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ...errors import MemorySpaceError
from .options import Options

if TYPE_CHECKING:
    from .data import Data
    from .findings import Findings

Parameter: TypeAlias = str | int | float | bool | None
Cell: TypeAlias = Mapping[str, Parameter]  # all parameters a result depends on
Where: TypeAlias = Mapping[str, Parameter | tuple[Parameter, ...]]  # of several, any matches
PlotKind: TypeAlias = Literal["bars", "lines", "series", "cdf", "heat"]

SEED = "seed"


class CannotRun(MemorySpaceError):
    """A cell needs something that is missing here: a package, a model, a server."""


@dataclass(frozen=True)
class Asked:
    """One query: the right answers, and what was found, best first.

    Where results are judged by content, ``right`` lists the found results that were right.
    """

    question: str
    right: tuple[str, ...]
    ranked: tuple[str, ...]
    category: str = ""


@dataclass(frozen=True)
class CellResult:
    """The result of a cell. ``figures`` are reproducible; ``timings`` depend on the machine.

    ``intervals`` belong to figures that are means over many queries, for runs with one seed.
    """

    figures: Mapping[str, float]
    timings: Mapping[str, float] = field(default_factory=dict)
    series: Mapping[str, Sequence[float]] = field(default_factory=dict)
    timed_series: Mapping[str, Sequence[float]] = field(default_factory=dict)
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    ranks: Sequence[Asked] = ()


@dataclass(frozen=True)
class Table:
    """A table of the groups that ``where`` selects: ``rows`` are parameters, ``columns`` figures.

    The default rows are the parameters in which these groups differ; the default columns are all.
    With ``parts``, there is a row for each part: see ``Findings.in_parts``.
    """

    title: str
    where: Where = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    parts: str = ""
    note: str = ""


@dataclass(frozen=True)
class Plot:
    """A plot of the groups that ``where`` selects, one panel per value of ``facet``.

    ``bars`` and ``lines``: the figure ``y`` over the parameter ``x``, coloured by ``group``.
    ``series``: the series ``y`` over its steps, or over the series ``x``. ``cdf``: the distribution
    of the series' values. ``heat``: the figure ``y`` for each ``x`` (across) and ``group`` (down).
    With ``parts``, the parts are a parameter of that name: see ``Findings.in_parts``. ``beside``
    maps further figures, ``y`` among them, to panel titles. ``better`` says which direction is
    better; ``caption`` adds what else a reader should know.
    """

    name: str
    title: str
    kind: PlotKind
    y: str
    x: str = ""
    group: str = ""
    facet: str = ""
    parts: str = ""
    beside: Mapping[str, str] = field(default_factory=dict)
    where: Where = field(default_factory=dict)
    x_label: str = ""
    y_label: str = ""
    log_x: bool = False
    log_y: bool = False
    better: Literal["", "higher", "lower"] = ""
    caption: str = ""


@dataclass(frozen=True)
class Published:
    """Figures published elsewhere for the groups that ``where`` selects."""

    where: Where
    figures: Mapping[str, float]
    source: str


@dataclass(frozen=True)
class Claim:
    """A statement, and whether the findings support it. It is omitted if not measured.

    ``because`` returns the figures that decide it.
    """

    text: str
    holds: Callable[[Findings], bool]
    because: Callable[[Findings], str] | None = None


def _no_files(options: Any) -> Sequence[str]:
    return ()


@dataclass(frozen=True)
class Experiment:
    """A question that cells answer. ``files`` names the data files it reads from a folder."""

    name: str
    about: str
    options: type[Options]
    cells: Callable[[Any, Data], Sequence[Cell]]
    run: Callable[[Cell, Data], CellResult]
    files: Callable[[Any], Sequence[str]] = _no_files
    version: int = 1
    tables: tuple[Table, ...] = ()
    plots: tuple[Plot, ...] = ()
    published: tuple[Published, ...] = ()
    claims: tuple[Claim, ...] = ()
    notes: str = ""


def chosen_by(where: Where, cell: Cell) -> bool:
    """Return whether a cell has these parameters; a missing parameter counts as ``None``."""
    return all(
        cell.get(name) in wanted if isinstance(wanted, tuple) else cell.get(name) == wanted
        for name, wanted in where.items()
    )


def integer(cell: Cell, name: str) -> int:
    """Return a parameter that must be an integer."""
    value = cell[name]
    if not isinstance(value, int):
        raise TypeError(f"{name} must be an int, got {value!r}")
    return value
