"""Policies on one recorded trace: which objects should be hot, and when to collect.

A trace of an agent's memory is recorded once per seed and stored beside the results
(``trace-SEED.jsonl.gz``); ``--trace`` replays one of your own. It is replayed to every paging
policy (``paging``), to every collection policy alone (``gc``), and to a bandit that learns which of
them to follow. From the bandit's log alone, ``off-policy`` estimates what each policy would have
earned and compares that with its own replay.
"""

from __future__ import annotations

import hashlib
import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from ...errors import InvalidInput
from ...kernel import (
    AdaptiveFragmentationPolicy,
    BanditGCPolicy,
    GCPolicy,
    ObjectGrowthPolicy,
    PeriodicGCPolicy,
)
from ...kernel.tiers.replacement import POLICIES
from ..harness.data import Data
from ..harness.environment import installed
from ..harness.experiment import (
    Cell,
    CellResult,
    Claim,
    Experiment,
    Parameter,
    Plot,
    Table,
    integer,
)
from ..harness.findings import Findings, Group, NotMeasured, part_name
from ..harness.measuring import spread
from ..harness.options import Options, option
from .agent_trace import recorded
from .off_policy import Value, doubly_robust, inverse_propensity, self_normalised, weighed
from .replaying import FARTHEST, GCReplay, paged, replay_paging
from .traces import USED, TraceStep, peak_bytes, read_trace, write_trace

TEXT = "english_novels_48mb.txt.xz"
READ = 4_000_000  # characters of it are enough
POINTS = 40  # points of a curve
ROOM = 1.5  # heap bytes per peak byte of live data
PENALTY = 1.0  # weight of a share of the time, relative to the same share of the heap
ENOUGH = 200  # fewest decisions for a normal approximation of their mean
BANDIT = "bandit"
PARTS = ("paging", "gc", "off-policy")

ARMS: Mapping[str, Callable[[], GCPolicy]] = {
    "periodic": lambda: PeriodicGCPolicy(0.05),
    "fragmentation": lambda: AdaptiveFragmentationPolicy(0.4, 0.02),
    "growth": lambda: ObjectGrowthPolicy(0.1, 20),
}


@dataclass(frozen=True)
class PolicyOptions(Options):
    """What is recorded, and which policies it is replayed to."""

    parts: tuple[str, ...] = option(PARTS, "which", choices=PARTS)
    steps: int = option(60_000, "steps of the trace", quick=4000)
    hot_shares: tuple[float, ...] = option(
        (0.05, 0.1, 0.2, 0.4), "hot bytes per byte of peak live data", quick=(0.1, 0.4)
    )
    epsilons: tuple[float, ...] = option((0.1, 0.3), "the bandit's exploration rates")
    trace: Path | None = option(  # noqa: RUF009  # it is a field
        None, "a trace to replay instead of recording one"
    )


def cells(options: PolicyOptions, data: Data) -> list[Cell]:
    """Return the cells of all parts."""
    made: list[dict[str, Parameter]] = []
    if "paging" in options.parts:
        made += [
            {"part": "paging", "policy": policy, "hot_share": share}
            for share in options.hot_shares
            for policy in (*POLICIES, FARTHEST)
        ]
    if "gc" in options.parts:
        made += [{"part": "gc", "policy": arm, "epsilon": None} for arm in ARMS]
        made += [
            {"part": "gc", "policy": BANDIT, "epsilon": epsilon} for epsilon in options.epsilons
        ]
    if "off-policy" in options.parts:
        made += [
            {"part": "off-policy", "policy": arm, "epsilon": epsilon}
            for epsilon in options.epsilons
            for arm in ARMS
        ]
    trace: dict[str, Parameter] = {"trace": data.label, "steps": options.steps}
    if options.trace is not None:
        trace = {"trace": _fingerprint(options.trace), "steps": None}
    return [{**trace, **cell, "seed": seed} for cell in made for seed in options.seeds]


def run(cell: Cell, data: Data) -> CellResult:
    """Replay the trace of a seed."""
    steps = data.once(("trace", cell["seed"]), lambda: trace_of(cell, data))
    return {"paging": _paging, "gc": _gc, "off-policy": _off_policy}[str(cell["part"])](
        cell, data, steps
    )


# -- the trace -------------------------------------------------------------------------------------


def trace_of(cell: Cell, data: Data) -> list[TraceStep]:
    """Return the user's trace, the stored one, or a new one, which is then stored."""
    options = data.options
    assert isinstance(options, PolicyOptions)
    if options.trace is not None:
        return read_trace(options.trace)[0]
    seed, steps = integer(cell, "seed"), integer(cell, "steps")
    about = {"text": data.checksums[TEXT], "steps": steps, "seed": seed,
             "memoryspace": installed("memoryspace")}  # fmt: skip
    kept = None if data.folder is None else data.folder / f"trace-{seed}.jsonl.gz"
    if kept is not None and kept.exists():
        found, of = read_trace(kept)
        if of == about:
            return found
    text = data.once("text", lambda: data.bytes_of(TEXT)[:READ].decode("utf-8", "ignore"))
    made = recorded(text, steps, seed)
    if kept is not None:
        write_trace(kept, made, about)
    return made


def _fingerprint(path: Path) -> str:
    try:
        return f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()[:12]}"
    except OSError as error:
        raise InvalidInput(f"the trace {path} cannot be read: {error.strerror}") from error


# -- the parts -------------------------------------------------------------------------------------


def _paging(cell: Cell, data: Data, steps: Sequence[TraceStep]) -> CellResult:
    hot = int(peak_bytes(steps) * float(cell["hot_share"] or 0))
    paging = paged(str(cell["policy"]), steps, hot)
    rates = replay_paging(paging, steps, POINTS)
    return CellResult(
        figures={
            "hot_kb": hot / 1e3,
            "uses": sum(step.verb == USED for step in steps),
            "hit_rate": paging.hits / max(1, paging.hits + paging.faults),
            "evictions": paging.evictions,
            "cold_writes": paging.writes,
        },
        series={"hit rate": rates, "share of the trace": _shares(len(rates))},
    )


def _gc(cell: Cell, data: Data, steps: Sequence[TraceStep]) -> CellResult:
    replay = _replayed(cell, data, steps, str(cell["policy"]))
    rewards = [each.reward for each in replay.bandit.decisions]
    fixed = [_mean_reward(_replayed(cell, data, steps, arm)) for arm in ARMS]
    regret = list(accumulate(max(fixed) - reward for reward in rewards))
    capacity = replay.space.capacity
    return CellResult(
        figures={
            "cycles": len(replay.pauses),
            "decisions": len(rewards),
            "under_pressure": replay.under_pressure,
            "reward": _mean_reward(replay),
            "regret": regret[-1] if regret else 0.0,
            "regret_each": regret[-1] / len(regret) if regret else 0.0,
            "freed_kb": replay.freed / 1e3,
            "garbage_share": statistics.fmean(replay.floating) / capacity,
            "peak_share": replay.peak / capacity,
            "reckoned_ms": sum(replay.pauses) * 1e3,
        },
        timings=spread("pause", replay.measured, unit="ms"),
        series={
            "regret": regret,
            "garbage": [bytes_ / capacity for bytes_ in _thinned(replay.floating)],
            "share of the trace": _shares(len(_thinned(replay.floating))),
        },
        timed_series={"pause_ms": [seconds * 1e3 for seconds in replay.measured]},
    )


def _off_policy(cell: Cell, data: Data, steps: Sequence[TraceStep]) -> CellResult:
    arm, epsilon = list(ARMS).index(str(cell["policy"])), float(cell["epsilon"] or 0)
    decisions = _replayed(cell, data, steps, BANDIT).bandit.decisions
    truth = _mean_reward(_replayed(cell, data, steps, str(cell["policy"])))
    log = weighed(decisions, len(ARMS), epsilon)
    inverse, robust = inverse_propensity(log, arm), doubly_robust(log, arm)
    values = {
        "its own replay": truth,
        "inverse propensity": inverse.mean,
        "self-normalised": self_normalised(log, arm),
        "doubly robust": robust.mean,
    }
    return CellResult(
        figures={
            "decisions": len(log),
            "chosen": sum(each.arm == arm for each in log),
            "replayed": truth,
            **_judged("ips", inverse, truth),
            **_judged("dr", robust, truth),
            **{part_name("value", name): value for name, value in values.items()},
        },
        intervals={
            part_name("value", "inverse propensity"): (inverse.low, inverse.high),
            part_name("value", "doubly robust"): (robust.low, robust.high),
        },
    )


def _judged(name: str, value: Value, truth: float) -> dict[str, float]:
    return {
        name: value.mean,
        f"{name}_low": value.low,
        f"{name}_high": value.high,
        f"{name}_error": abs(value.mean - truth),
        f"{name}_holds": float(value.holds(truth)),
    }


def _replayed(cell: Cell, data: Data, steps: Sequence[TraceStep], policy: str) -> GCReplay:
    """Return the replay of one policy, or of this cell's bandit; computed once."""
    seed, epsilon = integer(cell, "seed"), float(cell["epsilon"] or 0) if policy == BANDIT else 0.0

    def play() -> GCReplay:
        arms = [make() for name, make in ARMS.items() if policy in (BANDIT, name)]
        draw = random.Random(f"bandit {seed}")
        bandit = BanditGCPolicy(arms, epsilon, PENALTY, rng=draw)
        replay = GCReplay(bandit, int(peak_bytes(steps) * ROOM))
        replay.play(steps)
        return replay

    return data.once(("gc", seed, policy, epsilon), play)


def _mean_reward(replay: GCReplay) -> float:
    rewards = [each.reward for each in replay.bandit.decisions]
    return statistics.fmean(rewards) if rewards else 0.0


def _thinned(values: Sequence[float]) -> list[float]:
    return list(values[:: len(values) // 500 + 1])


def _shares(count: int) -> list[float]:
    return [(place + 1) / count for place in range(count)]


# -- claims ----------------------------------------------------------------------------------------


def _learns(found: Findings) -> bool:
    """Return whether the bandit's regret is below the mean regret of the policies."""
    fixed = found.where({"part": "gc", "policy": tuple(ARMS)})
    bandits = found.where({"part": "gc", "policy": BANDIT})
    if not fixed or not bandits:
        raise NotMeasured("gc")
    usual = statistics.fmean(group.figures["regret_each"].mean for group in fixed)
    return all(group.figures["regret_each"].mean < usual for group in bandits)


def _estimated(found: Findings) -> list[Group]:
    groups = found.where({"part": "off-policy"})
    if not groups or min(group.figures["decisions"].mean for group in groups) < ENOUGH:
        raise NotMeasured("off-policy, with decisions enough")
    return groups


def _order_is_right(found: Findings) -> bool:
    groups = _estimated(found)
    for epsilon in dict.fromkeys(group.cell["epsilon"] for group in groups):
        pairs = [
            (group.figures["dr"].mean, group.figures["replayed"].mean)
            for group in groups
            if group.cell["epsilon"] == epsilon
        ]
        if sorted(pairs) != sorted(pairs, key=lambda pair: pair[1]):
            return False
    return True


def _estimates_hold(found: Findings) -> bool:
    groups = _estimated(found)
    held = [value for group in groups for value in group.figures["dr_holds"].values]
    return statistics.fmean(held) >= 0.8


EXPERIMENT = Experiment(
    "policies",
    "every paging and collection policy on one recorded trace; a bandit and what its log tells",
    PolicyOptions,
    cells,
    run,
    files=lambda options: () if options.trace is not None else (TEXT,),
    tables=(
        Table("Paging", {"part": "paging"},
              ("hot_kb", "uses", "hit_rate", "evictions", "cold_writes"), ("hot_share", "policy"),
              note="farthest knows the future; it is a bound, not a policy."),
        Table("When to collect", {"part": "gc"},
              ("cycles", "decisions", "under_pressure", "reward", "regret", "regret_each",
               "freed_kb", "garbage_share", "peak_share", "reckoned_ms", "pause_p50_ms",
               "pause_p99_ms", "pause_max_ms"), ("policy", "epsilon"),
              note="The reward of a cycle: the share of the heap it freed less the share of the "
              "time it took. Regret: what the best policy alone earns a decision, less what was "
              "earned, added up. garbage: mean share of the heap."),
        Table("What each policy would earn, from the bandit's log", {"part": "off-policy"},
              ("decisions", "chosen", "replayed", "ips", "ips_low", "ips_high", "ips_holds", "dr",
               "dr_low", "dr_high", "dr_error", "dr_holds"), ("epsilon", "policy"),
              note="replayed is the truth: the policy alone on the same trace. holds: the share of "
              "seeds in which the 95 % interval has the truth in it. What an arm finds to free "
              "depends on who collected before it, which no weight corrects."),
    ),
    plots=(
        Plot("policies-hits", "Uses that were hot", "lines", "hit_rate", "hot_share", "policy",
             where={"part": "paging"}, x_label="share of the bytes that is hot", log_x=True),
        Plot("policies-heat", "Uses that were hot", "heat", "hit_rate", "hot_share", "policy",
             where={"part": "paging"}),
        Plot("policies-hits-over-time", "Uses that were hot, over the trace", "series", "hit rate",
             "share of the trace", "policy", facet="hot_share", where={"part": "paging"}),
        Plot("policies-writes", "Cold copies written", "bars", "cold_writes", "hot_share",
             "policy", where={"part": "paging"}),
        Plot("policies-regret", "Regret against the best policy alone", "series", "regret", "",
             "policy", facet="epsilon", where={"part": "gc"}, x_label="decisions"),
        Plot("policies-garbage", "Garbage in the heap", "series", "garbage", "share of the trace",
             "policy", where={"part": "gc", "epsilon": (None, 0.1)}, y_label="share of the heap"),
        Plot("policies-pauses", "How long a collection takes", "cdf", "pause_ms", group="policy",
             where={"part": "gc"}, x_label="ms", log_x=True),
        Plot("policies-off-policy", "Reward of a decision: replayed, and told from the log",
             "bars", "value", "policy", "estimator", facet="epsilon", parts="estimator",
             where={"part": "off-policy"}),
    ),
    claims=(
        Claim("the bandit loses less to the best policy than a policy chosen at random",
              _learns),
        Claim("estimates from the log put the policies in the order of their own replays",
              _order_is_right),
        Claim("the doubly robust interval has the replayed truth in it at least 4 times in 5",
              _estimates_hold),
    ),
)  # fmt: skip
