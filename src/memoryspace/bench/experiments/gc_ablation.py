"""The contribution of each garbage collector.

``seed``: the prototype's ablation. Reports go into 16 kB, the newest 10 are roots, and a collection
runs every 50 reports. Every 10 reports the query asks for the newest. If no collector frees enough
space, the oldest reports are freed by hand.

``fair``: queries ask for any report of the whole history, all systems have the same bytes, and the
most recently used (or newest) reports are kept longest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from ..harness.data import Data
from ..harness.experiment import (
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
from ..harness.findings import Findings, NotMeasured
from ..harness.options import Options, option
from ..memories.managed import Keeping, ManagerMemory, managed
from ..streams.asking import HITS
from ..streams.events import FILE, same, shuffled, texts_of
from ..streams.playing import Playing, play, result_of
from ..streams.queries import Query, stream_of

VARIANTS = ("ttl", "ttl_mark", "ttl_mark_gen", "mark")
HEAP = 16_384
ROOTS = 10
COLLECT_EVERY = 50
ASK_EVERY = 10


@dataclass(frozen=True)
class AblationOptions(Options):
    """Sizes, and which collectors."""

    settings: tuple[str, ...] = option(
        ("seed",),
        "settings to run; bench all runs both",
        choices=("seed", "fair"),
        full=("seed", "fair"),
    )
    limit: int = option(600, "reports in the seed's setting")
    collector_variants: tuple[str, ...] = option(VARIANTS, "which", choices=VARIANTS)
    fair_limit: int = option(20_000, "reports in the fair setting", quick=1000)
    budgets: tuple[int, ...] = option(
        (32_768, 131_072, 524_288), "bytes in the fair setting", quick=(8_192, 32_768)
    )
    keep: tuple[str, ...] = option(
        ("used", "newest"), "what is kept longest", choices=("used", "newest")
    )


def cells(options: AblationOptions, data: Data) -> list[Cell]:
    """Return the cells of both settings."""
    made: list[dict[str, Parameter]] = []
    if "seed" in options.settings:
        made += [
            {"setting": "seed", "data": data.label, "limit": options.limit, "collectors": variant,
             "capacity": HEAP}
            for variant in options.collector_variants
        ]  # fmt: skip
    if "fair" in options.settings:
        made += [
            {"setting": "fair", "data": data.label, "limit": options.fair_limit, "keep": keep,
             "collectors": variant, "capacity": budget}
            for keep in options.keep
            for variant in options.collector_variants
            for budget in options.budgets
        ]  # fmt: skip
    return [{**cell, "seed": seed} for cell in made for seed in options.seeds]


def run(cell: Cell, data: Data) -> CellResult:
    """Run a cell of either setting."""
    seed = integer(cell, "seed")
    events = shuffled(data, seed, integer(cell, "limit"))
    texts, budget = texts_of(events), integer(cell, "capacity")
    keep = cast(Keeping, cell.get("keep") or "newest")
    memory = managed(budget, collectors=str(cell["collectors"]), keep=keep)
    if cell["setting"] == "fair":
        stream = stream_of(
            texts, lambda number, draw: events[number].exact_question, every=ASK_EVERY, seed=seed
        )
        result = play(memory, stream, budget=budget, metrics=HITS, tick=data.tick)
        return _with_pauses(result, memory)
    playing = Playing(memory, budget)
    for number, event in enumerate(events):
        playing.tell(event.text)
        memory.keep_roots(ROOTS)
        if not (number + 1) % COLLECT_EVERY:
            memory.manager.run_gc("periodic")
        if not (number + 1) % ASK_EVERY:
            right = tuple(n for n in range(number + 1) if same(event, texts[n]))
            playing.ask(Query(f"newest-{number}", event.question, right), texts, 1)
    memory.manager.run_gc("last")
    result = result_of(playing, HITS)
    memory.close()
    return _with_pauses(result, memory)


def _with_pauses(result: CellResult, memory: ManagerMemory) -> CellResult:
    """Add how long collections paused the program."""
    pauses = sorted(event.pause_duration * 1e3 for event in memory.manager.gc_events)
    timings = dict(result.timings)
    if pauses:
        timings |= {
            "gc_pause_p50_ms": pauses[len(pauses) // 2],
            "gc_pause_max_ms": pauses[-1],
        }
    return CellResult(
        result.figures,
        timings,
        result.series,
        {"gc_pause_ms": pauses},
        result.intervals,
        result.ranks,
    )


def _mark_frees(found: Findings) -> bool:
    where = {"setting": "seed"}
    marked = found.one("heap_used", {**where, "collectors": "ttl_mark"})
    alone = found.one("heap_used", {**where, "collectors": "ttl"})
    return marked.mean < alone.mean / 2


def _all_found(found: Findings) -> bool:
    groups = found.where({"setting": "seed"})
    if not groups:
        raise NotMeasured("the seed's setting was not run")
    return all(group.figures["hit@1"].mean == 1 for group in groups)


def _published(collectors: str | tuple[str, ...], figures: Mapping[str, float]) -> Published:
    where = {"setting": "seed", "data": "ufo", "collectors": collectors}
    return Published(where, figures, "MemorySpace prototype, GC ablation")


EXPERIMENT = Experiment(
    "gc-ablation",
    "what each collector frees, what it costs, and what is still found",
    AblationOptions,
    cells,
    run,
    files=lambda options: (FILE,),
    version=2,
    tables=(
        Table(
            "The seed's setting: 16 kB, the newest report is asked for",
            {"setting": "seed"},
            ("n", "hit@1", "gc_cycles", "heap_used", "freed_by_hand", "gc_pause_max_ms"),
            ("collectors",),
        ),
        Table(
            "Fair: any report of the whole history",
            {"setting": "fair"},
            ("n", "hit@1", "hit@5", "kept", "gc_cycles", "freed_by_hand", "store_us",
             "gc_pause_p50_ms", "gc_pause_max_ms"),
            ("keep", "collectors", "capacity"),
        ),
    ),
    plots=(
        Plot(
            "gc-seed", "The seed's setting: bytes after the last collection", "bars", "heap_used",
            "collectors", where={"setting": "seed"},
        ),
        Plot(
            "gc-fair", "Fair: the report itself", "lines", "hit@1", "capacity", "collectors",
            facet="keep", where={"setting": "fair"}, x_label="bytes", log_x=True,
        ),
        Plot(
            "gc-pauses", "Pauses of collections", "cdf", "gc_pause_ms", group="collectors",
            facet="capacity", where={"setting": "fair", "keep": "used"}, log_x=True,
            x_label="ms",
        ),
    ),
    published=(
        _published("ttl", {"hit@1": 1.0, "gc_cycles": 326, "heap_used": 16_384}),
        _published(
            ("ttl_mark", "ttl_mark_gen", "mark"),
            {"hit@1": 1.0, "gc_cycles": 12, "heap_used": 1680},
        ),
    ),
    claims=(
        Claim("in the seed's setting everything is found with every variant", _all_found),
        Claim("marking frees what expiry alone leaves", _mark_frees),
    ),
    notes="Nothing here has a time to live, so expiry alone frees nothing.",
)  # fmt: skip
