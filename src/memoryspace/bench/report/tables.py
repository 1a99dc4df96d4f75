"""Findings as text tables: for a terminal, a page, a document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..harness.benchmark import Grid
from ..harness.experiment import Parameter, Table
from ..harness.findings import Estimate, Findings, Group, NotMeasured

_UNITS = {  # by suffix of a name, the longest first
    "_per_s": "1/s",
    "_bytes": "bytes",
    "_us": "µs",
    "_ms": "ms",
    "_mb": "MB",
    "_kb": "kB",
    "_s": "s",
}


def grids(found: Findings) -> Iterator[Grid]:
    """Yield the declared tables, or one of everything; skip empty ones."""
    declared = found.experiment.tables or (Table(found.experiment.about),)
    for table in declared:
        groups = found.in_parts(table.parts, table.where)
        if groups:
            yield _grid(table, _ordered(table, groups))


def claims(found: Findings) -> list[tuple[str, bool | None]]:
    """Return each claim, and whether it holds; ``None`` if it was not measured."""
    judged: list[tuple[str, bool | None]] = []
    for claim in found.experiment.claims:
        try:
            why = "" if claim.because is None else f" ({claim.because(found)})"
            judged.append((claim.text + why, claim.holds(found)))
        except NotMeasured:
            judged.append((claim.text, None))
    return judged


def plain(grid: Grid) -> str:
    """Return a table for a terminal."""
    rows = [grid.head, *grid.rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if number < grid.names else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    return "\n".join([grid.title, *lines, *([grid.note] if grid.note else [])])


def markdown(grid: Grid) -> str:
    """Return a table for a document."""
    rule = ["---"] * grid.names + ["---:"] * (len(grid.head) - grid.names)
    rows = [grid.head, rule, *grid.rows]
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def number(value: float) -> str:
    """Return a number with a readable number of digits."""
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    size = abs(value)
    if size >= 1000:
        return f"{value:,.0f}"
    if size >= 10:
        return f"{value:.1f}"
    return f"{value:.3f}" if size >= 0.01 else f"{value:.2g}"


def estimate(value: Estimate | None) -> str:
    """Return a mean with half the width of its interval; without one, with its range."""
    if value is None:
        return ""
    if value.low is None or value.high is None:
        least, most = number(min(value.values)), number(max(value.values))
        return number(value.mean) if least == most else f"{number(value.mean)} ({least}–{most})"
    if value.low == value.high:
        return number(value.mean)
    if value.n == 1:  # its interval need not be symmetric
        return f"{number(value.mean)} [{number(value.low)}, {number(value.high)}]"
    return f"{number(value.mean)} ± {number((value.high - value.low) / 2)}"


def differing(groups: Sequence[Group]) -> list[str]:
    """Return the parameters in which groups differ; if there are none, all."""
    names = list(dict.fromkeys(name for group in groups for name in group.cell))
    varying = [name for name in names if len({group.cell.get(name) for group in groups}) > 1]
    return varying or names


def words(name: str) -> str:
    """Return a name in readable form: ``store_us`` is "store (µs)"."""
    for ending, unit in _UNITS.items():
        if f"_{name}".endswith(ending):
            what = f"_{name}".removesuffix(ending).replace("_", " ").strip()
            return f"{what} ({unit})" if what else unit
    return name.replace("_", " ")


def text_of(value: Parameter) -> str:
    """Return a parameter as text."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return "–" if value is None else str(value)


def records(title: str, rows: Sequence[Mapping[str, Any]], names: int, note: str = "") -> Grid:
    """Return rows of plain values as a table; the first ``names`` columns are names."""
    head = list(dict.fromkeys(name for row in rows for name in row))
    body = tuple(tuple(_plain(row.get(name)) for name in head) for row in rows)
    return Grid(title, names, tuple(map(words, head)), body, note)


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return " / ".join(map(_plain, value))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return number(value)
    return "" if value is None else str(value)


def _ordered(table: Table, groups: Sequence[Group]) -> Sequence[Group]:
    """Return the rows; if the part is their first name, rows of one part stay together."""
    if not table.parts or table.rows[:1] != (table.parts,):
        return groups
    order = list(dict.fromkeys(group.cell.get(table.parts) for group in groups))
    return sorted(groups, key=lambda group: order.index(group.cell.get(table.parts)))


def _grid(table: Table, groups: Sequence[Group]) -> Grid:
    rows = [
        name
        for name in (list(table.rows) or differing(groups))
        if any(group.cell.get(name) is not None for group in groups)
    ]
    columns = [
        name
        for name in (list(table.columns) or _all_values(groups))
        if any(group.value(name) is not None for group in groups)
    ]
    published = [name for name in columns if any(name in group.published for group in groups)]
    head = [
        *map(words, rows),
        "seeds",
        *map(words, columns),
        *(f"{words(name)} (published)" for name in published),
    ]
    body = [
        (
            *(text_of(group.cell.get(name)) for name in rows),
            str(len(group.runs)),
            *(_shown(group, name) for name in columns),
            *(
                number(group.published[name]) if name in group.published else ""
                for name in published
            ),
        )
        for group in groups
    ]
    return Grid(table.title, len(rows), tuple(head), tuple(body), table.note)


def _shown(group: Group, name: str) -> str:
    """Return a value as text; the number of queries is a count, not an estimate."""
    found = group.value(name)
    return number(found.mean) if name == "n" and found is not None else estimate(found)


def _all_values(groups: Sequence[Group]) -> list[str]:
    names: dict[str, None] = {}
    for group in groups:
        names |= dict.fromkeys(group.figures) | dict.fromkeys(group.timings)
    return list(names)
