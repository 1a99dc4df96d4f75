"""The notebook that redraws every plot from results, written by ``memoryspace bench notebook``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ...files import write_atomic
from .. import catalogue

NOTEBOOK = Path("notebooks/experiments.ipynb")

_INTRODUCTION = """\
# Experiments

Claims, tables and plots of every experiment, made anew from the JSON that `memoryspace bench`
leaves in `results/bench`. Nothing is run. It needs `pip install 'memoryspace[bench]'`; the
environment variable `MEMORYSPACE_RESULTS` names another folder of results."""
_BEGIN = """\
import os
from pathlib import Path

from memoryspace.bench.report.reading import Redrawn, read_findings

here = Path(os.environ.get("MEMORYSPACE_RESULTS", "results/bench"))
RESULTS = here if here.is_dir() else Path("..") / here
there = sorted(
    path.stem for path in RESULTS.glob("*/*.json") if path.stem == path.parent.name
)


def redrawn(name):
    \"\"\"Claims, tables and plots of an experiment, or a line that says that it was not run.\"\"\"
    if name not in there:
        return f"there are no results of {name} in {RESULTS}: run memoryspace bench {name}"
    return Redrawn(read_findings(RESULTS, name))"""
_END = """\
## A figure of your own

`read_findings` gives every group with its parameters, means, intervals and series."""
_OWN = """\
for name in there:
    found = read_findings(RESULTS, name)
    group = found.groups[0]
    figure, value = next(iter(group.figures.items()))
    print(f"{name}: {len(found.groups)} groups; {figure} of the first is {value.mean:.3f}")"""


def notebook() -> dict[str, Any]:
    """Return the notebook as an nbformat 4 document."""
    cells = [_markdown(_INTRODUCTION), _code(_BEGIN)]
    for name in catalogue.MODULES:
        about = catalogue.experiment(name).about
        cells += [_markdown(f"## {name}\n\n{about[0].upper()}{about[1:]}."), _code(_shown(name))]
    cells += [_markdown(_END), _code(_OWN)]
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    return {
        "cells": cells,
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def write_notebook(path: Path) -> Path:
    """Write the notebook, without outputs; return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(notebook(), indent=1, ensure_ascii=False) + "\n"
    write_atomic(path, text.encode())
    return path


def _shown(name: str) -> str:
    return f'redrawn("{name}")'


def _markdown(text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": text.splitlines(keepends=True)}


def _code(text: str) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": [],
        "source": text.splitlines(keepends=True),
    }
