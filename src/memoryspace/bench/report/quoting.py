"""Documents that quote results: the text between two marks is taken from the last run.

The marks are comments::

    <!-- bench capacity-sweep: Claims -->
    (this text is replaced)
    <!-- end -->

The name is an experiment's. The title is that of a table in its ``NAME.md``, or ``Claims``, or
``plot NAME`` for a picture. ``all: Claims that failed`` lists those of every experiment. A title
may select rows and columns of a table::

    TITLE | only system=tiered/sliding; capacity=65,536 | show system; hit@1

``memoryspace bench quote DOCUMENT`` updates a document; no number is copied by hand.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ...errors import InvalidInput
from ...files import write_atomic
from .. import catalogue
from ..harness.experiment import Experiment
from .reading import read_document

MARK = re.compile(r"(<!-- bench ([\w-]+): (.+?) -->\n).*?(<!-- end -->)", re.S)
_PLOT = "plot "
_FAILED = ("all", "Claims that failed")


def quote(document: Path, results: Path) -> Iterator[str]:
    """Update a document; yield a line for each experiment without results.

    Quotes of those experiments stay as they are.
    """
    if not document.is_file():
        raise InvalidInput(f"no such document: {document}")
    text = document.read_text("utf-8")
    write_atomic(document, quoted(text, results, document.parent).encode())
    for name in dict.fromkeys(mark[2] for mark in MARK.finditer(text)):
        if name != _FAILED[0] and not _page(results, name).is_file():
            yield f"{document}: there are no results of {name} yet"


def quoted(document: str, results: Path, place: Path) -> str:
    """Return a document in the folder ``place`` with its quotes updated."""

    def replaced(mark: re.Match[str]) -> str:
        if mark[2] != _FAILED[0] and not _page(results, mark[2]).is_file():
            return mark[0]
        return f"{mark[1]}\n{_said(results, mark[2], mark[3], place)}\n{mark[4]}"

    return MARK.sub(replaced, document)


def section(results: Path, name: str, title: str) -> str:
    """Return the section of an experiment's results with this title."""
    path = _page(results, name)
    if not path.is_file():
        raise InvalidInput(
            f"there are no results of {name} at {path}; run memoryspace bench {name}"
        )
    for part in path.read_text("utf-8").split("\n## ")[1:]:
        found, _, text = part.partition("\n")
        if found == title:
            return text.strip() + "\n"
    if name in catalogue.MODULES and title in _declared(catalogue.experiment(name)):
        return "Not measured in the last run.\n"
    raise InvalidInput(f"{path} has no part {title!r}")


def _said(results: Path, name: str, title: str, place: Path) -> str:
    if (name, title) == _FAILED:
        return failed_claims(results)
    if not title.startswith(_PLOT):
        title, *chosen = title.split(" | ")
        return selected(section(results, name, title), chosen)
    plots = {plot.name for plot in catalogue.experiment(name).plots}
    if title.removeprefix(_PLOT) not in plots:
        raise InvalidInput(f"{name} has no plot {title.removeprefix(_PLOT)!r}")
    picture = results / name / f"{title.removeprefix(_PLOT)}.svg"
    if not picture.is_file():
        return "Not drawn in the last run.\n"
    way = Path(os.path.relpath(picture, place)).as_posix()
    return f"![{title.removeprefix(_PLOT)}]({way})\n"


def failed_claims(results: Path) -> str:
    """Return the claims that do not hold, of all experiments that have results."""
    lines = [
        f"- {name}: {each['claim']}"
        for name in catalogue.MODULES
        if (results / name / f"{name}.json").is_file()
        for each in read_document(results, name)["claims"]
        if each["holds"] is False
    ]
    return "\n".join(lines) + "\n"


def selected(text: str, chosen: Sequence[str]) -> str:
    """Return the selected rows and columns of the leading table; without a selection, all."""
    if not chosen:
        return text
    lines = [line for line in text.splitlines() if line.startswith("|")]
    head, rule, *rows = [_cells(line) for line in lines]
    for each in chosen:
        kind, _, wanted = each.partition(" ")
        parts = [part.strip() for part in wanted.split(";")]
        if kind == "only":
            rows = [row for row in rows if all(_is(part, head, row) for part in parts)]
        else:
            kept = [_place(head, part) for part in parts]
            head, rule, *rows = [[row[at] for at in kept] for row in (head, rule, *rows)]
    if not rows:
        raise InvalidInput(f"no row of the table has {' | '.join(chosen)}")
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *rows)) + "\n"


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split(" | ")]


def _is(condition: str, head: list[str], row: list[str]) -> bool:
    column, _, wanted = condition.partition("=")
    return row[_place(head, column.strip())] in wanted.split("/")


def _place(head: list[str], column: str) -> int:
    if column not in head:
        raise InvalidInput(f"the table has no column {column!r}; it has {', '.join(head)}")
    return head.index(column)


def _declared(experiment: Experiment) -> set[str]:
    return {"Claims", *(table.title for table in experiment.tables)}


def _page(results: Path, name: str) -> Path:
    return results / name / f"{name}.md"
