"""What a command shows: a table for people, tab-separated lines for pipes, JSON for programs."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias

from msgspec import Struct

from .plain import block, json_text, one_line

if TYPE_CHECKING:
    from rich.console import Console

MOST_SHOWN = 400  # characters of a text in a table on a terminal


class Grid(Struct, frozen=True):
    """Rows under heads.

    Attributes:
        heads: The heads.
        rows: The rows, as long as the heads.
        wide: The columns whose texts may take several lines of a terminal.
    """

    heads: tuple[str, ...]
    rows: Sequence[Sequence[str]]
    wide: tuple[str, ...] = ("text",)


class Fields(Struct, frozen=True):
    """Names and values, one below the other."""

    fields: Mapping[str, str]


View: TypeAlias = Grid | Fields | str


class Screen:
    """Standard output and standard error of one command.

    Args:
        as_json: Write JSON instead of what people read.
        quiet: Write results and errors only.
    """

    def __init__(self, *, as_json: bool, quiet: bool) -> None:
        self.as_json = as_json
        self.quiet = quiet

    def show(self, data: Any, view: View) -> None:
        """Write a result: its data as one JSON document, or its view."""
        if self.as_json:
            indent = 2 if sys.stdout.isatty() else None
            sys.stdout.write(json_text(data, indent=indent) + "\n")
        elif isinstance(view, str):
            sys.stdout.write(block(view) + "\n")
        elif sys.stdout.isatty():
            _show_table(view)
        else:
            _write_lines(view)

    def stream(self, data: Any, view: View) -> None:
        """Write one of several results: a line of JSON, or its view."""
        if self.as_json:
            sys.stdout.write(json_text(data) + "\n")
            sys.stdout.flush()
        else:
            self.show(data, view)
            sys.stdout.flush()

    def note(self, text: str) -> None:
        """Tell people something beside the result, on standard error."""
        if not self.quiet and not self.as_json:
            sys.stderr.write(block(text) + "\n")


def console(file: TextIO) -> Console:
    """Return a console of Rich that changes nothing in a text: no markup, no emoji, no colours."""
    from rich.console import Console

    return Console(file=file, markup=False, emoji=False, highlight=False, soft_wrap=False)


def _show_table(view: Grid | Fields) -> None:
    from rich.table import Table
    from rich.text import Text

    is_grid = isinstance(view, Grid)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=is_grid)
    if isinstance(view, Grid):
        for head in view.heads:
            is_wide = head in view.wide
            style = "dim" if head == "id" else ""
            table.add_column(
                Text(head), style=style, header_style="bold", overflow="fold", no_wrap=not is_wide,
                min_width=20 if is_wide else None,
            )  # fmt: skip
        rows = [[Text(_cut(one_line(cell))) for cell in row] for row in view.rows]
    else:
        table.add_column(style="bold", no_wrap=True)
        table.add_column(overflow="fold")
        rows = [[Text(name), Text(block(value))] for name, value in view.fields.items()]
    for row in rows:
        table.add_row(*row)
    console(sys.stdout).print(table)


def _write_lines(view: Grid | Fields) -> None:
    rows = view.rows if isinstance(view, Grid) else list(view.fields.items())
    for row in rows:
        sys.stdout.write("\t".join(map(one_line, row)) + "\n")


def _cut(text: str) -> str:
    return text if len(text) <= MOST_SHOWN else text[: MOST_SHOWN - 1].rstrip() + "…"
