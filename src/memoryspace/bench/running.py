"""The runner of experiments: it runs unfinished cells, then writes all results."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..errors import InvalidInput, MemorySpaceError
from ..kernel import FolderLock
from .harness import samples
from .harness.cells import CellFile, Finished, key_of
from .harness.data import SAMPLE, Data, find_files
from .harness.environment import commit, installed
from .harness.experiment import SEED, CannotRun, Cell, CellResult, Experiment
from .harness.findings import Findings, findings
from .harness.options import Options
from .harness.progress import Progress
from .report.drawing import NoPlots, draw
from .report.saving import save


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run, and the files it wrote."""

    findings: Findings
    files: tuple[Path, ...]
    no_plots: str = ""  # why there are none


def run_experiment(
    experiment: Experiment,
    options: Options,
    *,
    out: Path,
    data_path: Path | None = None,
    fresh: bool = False,
    progress: Progress | None = None,
) -> Outcome:
    """Run the cells missing from ``out/NAME/cells.jsonl``, and write all results there.

    A folder allows one run at a time; a second one is refused.
    """
    with open_data(experiment, options, data_path) as data, FolderLock(out / experiment.name):
        data.folder = out / experiment.name
        path = data.folder / "cells.jsonl"
        if fresh:
            path.unlink(missing_ok=True)  # before the file is read: it may be what is corrupt
        kept = CellFile(path)
        found = _run_cells(experiment, data, kept, progress)
        return _saved(found, data, data.folder)


def _saved(found: Findings, data: Data, folder: Path) -> Outcome:
    drawn = draw(found)
    reason = drawn.reason if isinstance(drawn, NoPlots) else ""
    pictures = () if isinstance(drawn, NoPlots) else drawn
    return Outcome(found, tuple(save(found, data, folder, pictures, reason)), reason)


@contextmanager
def open_data(experiment: Experiment, options: Options, path: Path | None) -> Iterator[Data]:
    """Open an experiment's data files; without a path, samples in a temporary folder."""
    names = experiment.files(options)
    if path is not None:
        files, label = find_files(path, names) if names else ({}, SAMPLE)
        yield Data(files, label, options)
        return
    with tempfile.TemporaryDirectory(prefix="memoryspace-bench-") as folder:
        yield Data(samples.write(names, Path(folder)), SAMPLE, options)


def _run_cells(
    experiment: Experiment, data: Data, kept: CellFile, progress: Progress | None
) -> Findings:
    keys = _keys(experiment, data)
    code = commit() or ""
    skipped: list[tuple[Cell, str]] = []
    if progress is not None:
        progress.start(len(keys), sum(key in kept.finished for key in keys))
        data.tick = progress.tick
    for key, cell in keys.items():
        if key in kept.finished:
            continue
        started = time.perf_counter()
        try:
            result = experiment.run(cell, data)
        except CannotRun as reason:
            skipped.append((cell, str(reason)))
        else:
            _check(experiment, cell, result)
            seconds = time.perf_counter() - started
            kept.append(Finished(key, dict(cell), result, seconds, code))
        if progress is not None:
            progress.finish_cell(shown(cell), time.perf_counter() - started)
    if progress is not None:
        progress.end()
    done = [kept.finished[key] for key in keys if key in kept.finished]
    return findings(experiment, done, skipped)


def _keys(experiment: Experiment, data: Data) -> dict[str, Cell]:
    """Return the cells by key, in order; raise if two are the same."""
    package = installed("memoryspace") or ""
    cells: Sequence[Cell] = experiment.cells(data.options, data)
    keys = {key_of(experiment, cell, data.checksums, package): cell for cell in cells}
    if len(keys) != len(cells):
        raise InvalidInput(f"{experiment.name} has the same cell twice; cells must differ")
    if not keys:
        raise InvalidInput(f"{experiment.name} has nothing to run with these options")
    return keys


def _check(experiment: Experiment, cell: Cell, result: CellResult) -> None:
    """Raise if a figure is not a number, because it would be read back as missing."""
    everything: list[Mapping[str, float]] = [result.figures, result.timings]
    wrong = [
        name for part in everything for name, value in part.items() if not math.isfinite(value)
    ]
    if wrong:
        raise MemorySpaceError(f"{experiment.name} ({shown(cell)}): {wrong[0]} is not a number")


def shown(cell: Cell) -> str:
    """Return a cell as one line."""
    rest = [f"{name} {value}" for name, value in cell.items() if name != SEED]
    return ", ".join([*rest, *([f"seed {cell[SEED]}"] if SEED in cell else [])])
