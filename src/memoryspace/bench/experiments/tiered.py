"""Two tiers: the cost of each paging strategy and write policy, and whether data is lost.

``seed``: the prototype's benchmark. Reports are stored; every ``query_interval`` reports the query
asks for the newest, so the cold tier is never needed. At most 256 reports are hot.

``fair``: delayed recall. Queries ask for any report of the whole history, through a hot tier that
holds a small part of it. Only the report itself is right; the reference is a flat memory that holds
everything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from ...kernel import AdaptiveFragmentationPolicy
from ...kernel.tiers.replacement import POLICIES
from ...kernel.tiers.tiering import WritePolicy
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
from ..memories.managed import UNBOUNDED, Memory, TieredMemory, managed
from ..streams.asking import HITS
from ..streams.events import FILE, same, shuffled, texts_of
from ..streams.fair import really_used
from ..streams.playing import DEPTH, play
from ..streams.queries import Query, Stream, stream_of

HOT = 256  # reports, in the seed's setting
ROOMY = 1 << 20
WRITES = ("write_back", "write_through")
STRATEGIES = tuple(POLICIES)


@dataclass(frozen=True)
class TieredOptions(Options):
    """The prototype's flags, and those of the fair setting."""

    settings: tuple[str, ...] = option(
        ("seed",),
        "settings to run; bench all runs both",
        choices=("seed", "fair"),
        full=("seed", "fair"),
    )
    limit: int = option(600, "reports in the seed's setting")
    query_interval: int = option(15, "reports between two queries")
    fragmentation_threshold: float = option(0.4, "fragmentation at which to collect")
    root_capacity: int = option(10, "reports that are roots")
    paging_strategy: tuple[str, ...] = option(
        STRATEGIES, "demotion policies", choices=STRATEGIES, quick=("arc", "lru", "lfu")
    )
    write_policy: tuple[str, ...] = option(WRITES, "when cold copies are written", choices=WRITES)
    promotion_batch: int = option(2, "reports promoted together")
    fair_limit: int = option(5_000, "reports in the fair setting", quick=1000)
    budgets: tuple[int, ...] = option(
        (32_768, 131_072), "bytes of the hot tier in the fair setting", quick=(16_384,)
    )


def cells(options: TieredOptions, data: Data) -> list[Cell]:
    """Return the cells of both settings."""
    ways: list[dict[str, Parameter]] = [
        {"strategy": strategy, "writes": writes, "promotion_batch": options.promotion_batch}
        for strategy in options.paging_strategy
        for writes in options.write_policy
    ]
    made: list[dict[str, Parameter]] = []
    if "seed" in options.settings:
        kept: dict[str, Parameter] = {
            "setting": "seed", "data": data.label, "limit": options.limit,
            "every": options.query_interval, "roots": options.root_capacity,
            "fragmentation": options.fragmentation_threshold, "system": "tiered",
        }  # fmt: skip
        made += [{**kept, **way} for way in ways]
    if "fair" in options.settings:
        kept = {"setting": "fair", "data": data.label, "limit": options.fair_limit,
                "every": options.query_interval}  # fmt: skip
        made += [{**kept, "system": "flat"}]
        made += [
            {**kept, "system": "tiered", "capacity": budget, **way}
            for budget in options.budgets
            for way in ways
        ]
    return [{**cell, "seed": seed} for cell in made for seed in options.seeds]


def run(cell: Cell, data: Data) -> CellResult:
    """Run a cell of either setting."""
    stream = _newest(cell, data) if cell["setting"] == "seed" else _delayed(cell, data)
    memory, budget = _memory(cell)
    depth = 1 if cell["setting"] == "seed" else DEPTH
    return play(memory, stream, budget=budget, metrics=HITS, depth=depth, tick=data.tick)


def _memory(cell: Cell) -> tuple[Memory, int | None]:
    if cell["system"] == "flat":
        return managed(UNBOUNDED), None
    seed_setting = cell["setting"] == "seed"
    budget = ROOMY if seed_setting else integer(cell, "capacity")
    memory = TieredMemory(
        budget,
        paging_strategy=str(cell["strategy"]),
        write_policy=cast(WritePolicy, cell["writes"]),
        promotion_batch=integer(cell, "promotion_batch"),
        max_hot_objects=HOT if seed_setting else None,
        policies=(AdaptiveFragmentationPolicy(float(cell["fragmentation"] or 0)),)
        if seed_setting
        else (),
        roots=integer(cell, "roots") if seed_setting else 0,
    )
    return memory, budget


def _newest(cell: Cell, data: Data) -> Stream:
    """Ask for the newest report by shape and city; any report with both is right."""
    events = shuffled(data, integer(cell, "seed"), integer(cell, "limit"))
    texts, every = texts_of(events), integer(cell, "every")
    asked = {}
    for now in range(every - 1, len(events), every):
        event = events[now]
        right = tuple(n for n in range(now + 1) if same(event, texts[n]))
        asked[now] = [Query(f"newest-{now}", event.question, right)]
    return Stream(texts, asked)


def _delayed(cell: Cell, data: Data) -> Stream:
    seed = integer(cell, "seed")
    events = shuffled(data, seed, integer(cell, "limit"))
    return stream_of(
        texts_of(events),
        lambda number, draw: events[number].exact_question,
        every=integer(cell, "every"),
        seed=seed,
    )


def _nothing_is_lost(found: Findings) -> bool:
    flat = found.one("hit@1", {"setting": "fair", "system": "flat"})
    tiered = found.where({"setting": "fair", "system": "tiered"})
    return bool(tiered) and all(each.figures["hit@1"].values == flat.values for each in tiered)


def _all_found(found: Findings) -> bool:
    groups = found.where({"setting": "seed"})
    if not groups:
        raise NotMeasured("the seed's setting was not run")
    return all(group.figures["hit@1"].mean == 1 for group in groups)


_SEED_FIGURES = {"hit@1": 1.0, "page_faults": 600, "page_evictions": 344, "cold_hits": 0}

EXPERIMENT = Experiment(
    "tiered",
    "which paging strategy and write policy costs what, and whether anything is lost",
    TieredOptions,
    cells,
    run,
    files=lambda options: (FILE,),
    version=2,
    tables=(
        Table(
            "The seed's setting: the report just stored",
            {"setting": "seed"},
            ("n", "hit@1", "page_faults", "page_evictions", "cold_hits", "store_us"),
            ("strategy", "writes"),
            note="A report that is stored into the hot tier is no page fault here; the prototype "
            "counted each of its 600 as one.",
        ),
        Table(
            "Fair: delayed recall through the cold tier",
            {"setting": "fair"},
            ("n", "hit@1", "hit@5", "hit_rate", "cold_hits", "promotions", "demotions",
             "page_faults", "page_writes", "store_us", "retrieve_us", "retrieve_p99_us"),
            ("system", "capacity", "strategy", "writes"),
        ),
        really_used("system", "capacity", "strategy", "writes"),
    ),
    plots=(
        Plot(
            "tiered-hot", "Fair: how often what was asked for was hot", "bars", "hit_rate",
            "strategy", "writes", facet="capacity", where={"setting": "fair", "system": "tiered"},
        ),
        Plot(
            "tiered-writes", "Fair: cold copies written", "bars", "page_writes", "strategy",
            "writes", facet="capacity", where={"setting": "fair", "system": "tiered"},
        ),
        Plot(
            "tiered-recall", "Fair: the report itself", "bars", "hit@1", "system", "strategy",
            where={"setting": "fair", "writes": (None, "write_back")},
        ),
    ),
    published=(
        Published({"setting": "seed", "data": "ufo", "limit": 600}, _SEED_FIGURES,
                  "MemorySpace prototype, tiered benchmark"),
    ),
    claims=(
        Claim("in the seed's setting everything is found", _all_found),
        Claim("delayed recall through the cold tier equals the flat store's", _nothing_is_lost),
    ),
    notes="The seed asks for what it has just stored, so its cold tier is never read.",
)  # fmt: skip
