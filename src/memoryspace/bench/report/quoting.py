"""Documents that quote results: what stands between two marks is what the last run says.

    <!-- bench capacity-sweep: Claims -->
    (what stands here is replaced)
    <!-- end -->

The name is an experiment's, the title that of a table of its ``NAME.md``, or ``Claims``, or
``plot NAME`` for a picture. ``memoryspace bench quote DOCUMENT`` brings a document up to date;
nobody copies a number by hand.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from ...errors import InvalidInput
from ...files import write_atomic
from .. import catalogue
from ..harness.experiment import Experiment

MARK = re.compile(r"(<!-- bench ([\w-]+): (.+?) -->\n).*?(<!-- end -->)", re.S)
_PLOT = "plot "


def quote(document: Path, results: Path) -> Iterator[str]:
    """Bring a document up to date; yield a line for each experiment without results.

    What it quotes of those stays as it is.
    """
    if not document.is_file():
        raise InvalidInput(f"there is no document {document}")
    text = document.read_text("utf-8")
    write_atomic(document, quoted(text, results, document.parent).encode())
    for name in dict.fromkeys(mark[2] for mark in MARK.finditer(text)):
        if not _page(results, name).is_file():
            yield f"{document}: there are no results of {name} yet"


def quoted(document: str, results: Path, place: Path) -> str:
    """Return a document that stands in the folder ``place`` as the results have it now."""

    def replaced(mark: re.Match[str]) -> str:
        if not _page(results, mark[2]).is_file():
            return mark[0]
        return f"{mark[1]}\n{_said(results, mark[2], mark[3], place)}\n{mark[4]}"

    return MARK.sub(replaced, document)


def section(results: Path, name: str, title: str) -> str:
    """Return what the results of an experiment say under a title."""
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
    if not title.startswith(_PLOT):
        return section(results, name, title)
    plots = {plot.name for plot in catalogue.experiment(name).plots}
    if title.removeprefix(_PLOT) not in plots:
        raise InvalidInput(f"{name} has no plot {title.removeprefix(_PLOT)!r}")
    picture = results / name / f"{title.removeprefix(_PLOT)}.svg"
    if not picture.is_file():
        return "Not drawn in the last run.\n"
    way = Path(os.path.relpath(picture, place)).as_posix()
    return f"![{title.removeprefix(_PLOT)}]({way})\n"


def _declared(experiment: Experiment) -> set[str]:
    return {"Claims", *(table.title for table in experiment.tables)}


def _page(results: Path, name: str) -> Path:
    return results / name / f"{name}.md"
