"""A small experiment for tests; as a program, it can be killed in the middle of a cell."""

from __future__ import annotations

import random
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from memoryspace.bench import (
    Asked,
    CannotRun,
    Cell,
    CellResult,
    Claim,
    Data,
    Experiment,
    Options,
    Plot,
    Published,
    Table,
    option,
    run_experiment,
)


@dataclass(frozen=True)
class ToyOptions(Options):
    sizes: tuple[int, ...] = option((10, 20), "how many", quick=(10,))
    kinds: tuple[str, ...] = option(("good", "bad"), "which", choices=("good", "bad", "absent"))
    slow: bool = option(False, "whether to wait")
    share: float = option(0.5, "how much: 50 %", flags=("--part",))


def cells(options: ToyOptions, data: Data) -> list[Cell]:
    return [
        {"kind": kind, "size": size, "share": options.share, "seed": seed}
        for kind in options.kinds
        for size in options.sizes
        for seed in options.seeds
    ]


def run(cell: Cell, data: Data) -> CellResult:
    if cell["kind"] == "absent":
        raise CannotRun("the package <absent> is not installed")
    words = data.once("words", lambda: data.bytes_of("tinyshakespeare.txt.gz").split()[:1000])
    assert isinstance(cell["size"], int)
    draw = random.Random(f"{cell['seed']} {cell['size']}")
    level = 0.9 if cell["kind"] == "good" else 0.5
    found = [level + draw.random() / 100 for _ in range(cell["size"])]
    word = draw.choice(words).decode()
    return CellResult(
        figures={"hit@1": sum(found) / len(found), "hit@1 [old]": 0.25, "hit@1 [new]": 0.75},
        timings={"seconds": time.perf_counter()},
        series={"hits": found, "step": list(range(len(found)))},
        timed_series={"pauses": [time.perf_counter() for _ in range(3)]},
        ranks=(Asked(word, ("a",), ("b", "a"), "old"),),
    )


TOY = Experiment(
    "toy",
    "what <toys> are worth",
    ToyOptions,
    cells,
    run,
    files=lambda options: ("tinyshakespeare.txt.gz",),
    tables=(
        Table("All & everything", columns=("hit@1", "seconds")),
        Table("By age", columns=("hit@1",), rows=("kind", "size", "age"), parts="age"),
        Table("Nothing", where={"kind": "none of them"}),
    ),
    plots=(
        Plot("toy-bars", "Hits in $ <kinds>", "bars", "hit@1", "kind", "size"),
        Plot("toy-lines", "Hits by size", "lines", "hit@1", "size", "kind", log_x=True),
        Plot("toy-series", "Hits over time", "series", "hits", "step", "kind", facet="size"),
        Plot("toy-cdf", "How they are spread", "cdf", "hits", group="kind"),
        Plot("toy-heat", "Heat", "heat", "hit@1", "size", "kind"),
        Plot("toy-parts", "By age", "bars", "hit@1", "age", "kind", parts="age"),
        Plot("toy-nothing", "Nothing", "bars", "no such figure", "kind"),
    ),
    published=(Published({"kind": "good", "size": 10}, {"hit@1": 0.972}, "the <paper>"),),
    claims=(
        Claim(
            "good is better than bad",
            lambda found: (
                found.mean("hit@1", {"kind": "good", "size": 10})
                > found.mean("hit@1", {"kind": "bad", "size": 10})
            ),
        ),
        Claim("bad is best", lambda found: found.mean("hit@1", {"kind": "bad", "size": 10}) > 0.9),
        Claim("never measured", lambda found: found.mean("hit@1", {"kind": "x"}) > 0),
    ),
)


def main() -> None:
    """Run all cells; before the fourth one, say so and wait for a line that never comes."""
    done = 0

    def stopping(cell: Cell, data: Data) -> CellResult:
        nonlocal done
        if done == 3:
            sys.stdout.write("waiting\n")
            sys.stdout.flush()
            sys.stdin.readline()
        done += 1
        return run(cell, data)

    stopped = Experiment(**{**vars(TOY), "run": stopping})
    run_experiment(stopped, ToyOptions(), out=Path(sys.argv[1]))


if __name__ == "__main__":
    main()
