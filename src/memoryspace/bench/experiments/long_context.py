"""Recall within one session, and over all sessions.

``seed``: the prototype's study. Sessions of 60 reports; at the end of each, 8 of them are queried
by shape and city, and the top result is right if it names both. The baseline is a window of 45
reports.

``fair``: the same bytes for all systems. Queries ask for any report of the whole history by
everything that distinguishes it; only the report itself is right.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...kernel import MemoryManager, Runtime
from ..harness.data import Data
from ..harness.experiment import (
    Asked,
    Cell,
    CellResult,
    Claim,
    Experiment,
    Parameter,
    Plot,
    Published,
    Table,
    integer,
)
from ..harness.findings import Findings
from ..harness.options import Options, option
from ..memories.baselines import INDEXES
from ..memories.managed import Steps
from ..memories.systems import QUICK, SYSTEMS, system_cells
from ..streams.asking import HITS, judged
from ..streams.events import FILE, Sighting, same, shuffled, texts_of
from ..streams.fair import compared, really_used, tiered_finds_all
from ..streams.playing import play_system
from ..streams.queries import stream_of

ROOMY = 1 << 22


@dataclass(frozen=True)
class LongContextOptions(Options):
    """The prototype's numbers, and those of the fair setting."""

    settings: tuple[str, ...] = option(
        ("seed",),
        "settings to run; bench all runs both",
        choices=("seed", "fair"),
        full=("seed", "fair"),
    )
    sessions: int = option(34, "sessions in the seed's setting", quick=10)
    session_length: int = option(60, "reports of a session")
    queries: int = option(8, "queries after each session")
    window: int = option(45, "reports that the sliding window holds")
    indexes: tuple[str, ...] = option(
        ("word counts",), "used in the seed's setting; the seed's own uses word counts",
        choices=tuple(INDEXES), full=tuple(INDEXES),
    )  # fmt: skip
    fair_limit: int = option(20_000, "reports in the fair setting", quick=1000)
    query_interval: int = option(10, "reports between two queries in the fair setting")
    budgets: tuple[int, ...] = option(
        (32_768, 131_072, 524_288), "bytes in the fair setting", quick=(8_192, 32_768)
    )
    systems: tuple[str, ...] = option(
        tuple(SYSTEMS), "used in the fair setting", choices=tuple(SYSTEMS), quick=QUICK
    )


def cells(options: LongContextOptions, data: Data) -> list[Cell]:
    """Return the cells of both settings."""
    made: list[dict[str, Parameter]] = []
    if "seed" in options.settings:
        made += [
            {
                "setting": "seed", "data": data.label, "index": index, "system": system,
                "sessions": options.sessions, "length": options.session_length,
                "queries": options.queries, "window": options.window,
            }
            for index in options.indexes
            for system in ("manager", "sliding")
        ]  # fmt: skip
    if "fair" in options.settings:
        kept: dict[str, Parameter] = {
            "setting": "fair",
            "data": data.label,
            "limit": options.fair_limit,
            "every": options.query_interval,
        }
        made += system_cells(kept, options.systems, options.budgets)
    return [{**cell, "seed": seed} for cell in made for seed in options.seeds]


def run(cell: Cell, data: Data) -> CellResult:
    """Run a cell of either setting."""
    seed = integer(cell, "seed")
    if cell["setting"] == "seed":
        count = integer(cell, "sessions") * integer(cell, "length")
        return _run_seed(cell, shuffled(data, seed, count))
    events = shuffled(data, seed, integer(cell, "limit"))
    stream = stream_of(
        texts_of(events),
        lambda number, draw: events[number].exact_question,
        every=integer(cell, "every"),
        seed=seed,
    )
    return play_system(cell, stream, HITS, data.tick)


def _run_seed(cell: Cell, events: Sequence[Sighting]) -> CellResult:
    length, draw = integer(cell, "length"), random.Random(f"sessions {cell['seed']}")
    asked: list[Asked] = []
    for at in range(0, len(events) - length + 1, length):
        session = events[at : at + length]
        best = _remembering(cell, session)
        for number in draw.sample(range(length), min(length, integer(cell, "queries"))):
            found = best(session[number].question)
            right = found is not None and same(session[number], found)
            query = session[number].question
            asked.append(Asked(query, ("top",) if right else (), ("top",) if found else ()))
    return judged(asked, {"hit@1": HITS["hit@1"]})


def _remembering(cell: Cell, session: Sequence[Sighting]) -> Callable[[str], str | None]:
    """Store a session as the system does; return a function that finds its top result."""
    index = INDEXES[str(cell["index"])]()
    if cell["system"] == "sliding":
        texts = texts_of(session[-integer(cell, "window") :])
        for number, text in enumerate(texts):
            index.add(number, text)

        def newest(query: str) -> str | None:
            hits = index.search(query, 1)
            return texts[hits[0][0]] if hits else None

        return newest
    manager = MemoryManager(ROOMY, retriever=index, runtime=Runtime(clock=Steps()))
    for event in session:
        manager.store({"text": event.text}, root=True)
    manager.run_gc()

    def kept(query: str) -> str | None:
        hits = manager.retrieve(query, 1)
        return hits[0].object.payload["text"] if hits else None

    return kept


def _better(found: Findings) -> bool:
    where = {"setting": "seed", "index": "word counts"}
    ours = found.one("hit@1", {**where, "system": "manager"})
    return (ours.high or ours.mean) >= 0.908 and ours.mean > found.mean(
        "hit@1", {**where, "system": "sliding"}
    )


EXPERIMENT = Experiment(
    "long-context",
    "what is found of a session of reports, and of all sessions",
    LongContextOptions,
    cells,
    run,
    files=lambda options: (FILE,),
    version=2,
    tables=(
        Table("The seed's setting", {"setting": "seed"}, ("n", "hit@1"), ("index", "system")),
        compared(
            "Fair: the same bytes for all, any report of the whole history", ("hit@1", "hit@5")
        ),
        really_used(),
    ),
    plots=(
        Plot(
            "long-context-seed", "The seed's setting", "bars", "hit@1", "system", "index",
            where={"setting": "seed"},
        ),
        Plot(
            "long-context-fair", "Fair: the report itself, over the whole history", "lines",
            "hit@1", "capacity", "system", where={"setting": "fair"}, x_label="bytes", log_x=True,
        ),
        Plot(
            "long-context-ages", "Fair, by age", "bars", "hit@1", "age", "system",
            facet="capacity", parts="age", where={"setting": "fair"},
        ),
    ),
    published=tuple(
        Published(
            {"setting": "seed", "system": system, "data": "ufo", "index": "word counts"},
            {"hit@1": value},
            "MemorySpace prototype, 272 queries",
        )
        for system, value in (("manager", 0.908), ("sliding", 0.688))
    ),
    claims=(
        Claim("in the seed's setting the manager reaches 0.908 and beats the window", _better),
        tiered_finds_all("hit@1"),
    ),
    notes="The seed's window forgets a quarter of each session, and the manager nothing.",
)  # fmt: skip
