"""What an experiment is: values that say what to run, and what to make of the figures."""

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
Cell: TypeAlias = Mapping[str, Parameter]  # one run, by everything its result depends on
Where: TypeAlias = Mapping[str, Parameter | tuple[Parameter, ...]]  # of several, any will do
PlotKind: TypeAlias = Literal["bars", "lines", "series", "cdf", "heat"]

SEED = "seed"


class CannotRun(MemorySpaceError):
    """A cell needs something that is not here: a package, a model, a server."""


@dataclass(frozen=True)
class Asked:
    """One query: what would have been right, and what was found, the best first.

    Where a result is judged by what it says, ``right`` are those of the found that were right.
    """

    question: str
    right: tuple[str, ...]
    ranked: tuple[str, ...]
    category: str = ""


@dataclass(frozen=True)
class CellResult:
    """What a cell came to. ``figures`` are the same each time; ``timings`` are this machine's.

    ``intervals`` are of figures that are means over many queries, when there is only one seed.
    """

    figures: Mapping[str, float]
    timings: Mapping[str, float] = field(default_factory=dict)
    series: Mapping[str, Sequence[float]] = field(default_factory=dict)
    timed_series: Mapping[str, Sequence[float]] = field(default_factory=dict)
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    ranks: Sequence[Asked] = ()


@dataclass(frozen=True)
class Table:
    """A table of the groups that ``where`` chooses: ``rows`` are parameters, ``columns`` figures.

    Without rows, they are the parameters in which these groups differ; without columns, all.
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
    """A picture of the groups that ``where`` chooses, a panel for each value of ``facet``.

    ``bars`` and ``lines``: the figure ``y`` over the parameter ``x``, coloured by ``group``.
    ``series``: the series ``y`` over its steps, or over the series ``x``; ``cdf``: how its values
    are distributed. ``heat``: the figure ``y`` for each ``x`` (across) and ``group`` (down).
    With ``parts``, the parts are a parameter of that name: see ``Findings.in_parts``.
    ``beside`` are other figures, each a panel of its own: names and titles; ``y`` is among them.
    ``better`` says which way is better, ``caption`` what else a reader should know.
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
    """What somebody else has published for the groups that ``where`` chooses."""

    where: Where
    figures: Mapping[str, float]
    source: str


@dataclass(frozen=True)
class Claim:
    """A sentence, and whether the findings bear it out. What was not measured is not claimed.

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
    """Tell whether a cell has the parameters asked for; one it does not have is ``None``."""
    return all(
        cell.get(name) in wanted if isinstance(wanted, tuple) else cell.get(name) == wanted
        for name, wanted in where.items()
    )


def integer(cell: Cell, name: str) -> int:
    """Return a parameter that is a whole number."""
    value = cell[name]
    if not isinstance(value, int):
        raise TypeError(f"{name} must be an int, got {value!r}")
    return value
