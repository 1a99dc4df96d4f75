"""The system studies: what they count is right, and the same each time."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryspace.bench import (
    CannotRun,
    CellResult,
    Findings,
    Options,
    catalogue,
    run_experiment,
)
from memoryspace.bench.harness.intervals import share, share_interval
from memoryspace.bench.harness.measuring import histogram, percentile, spread
from memoryspace.bench.memories.backends import STORE_BACKENDS, VARIABLE, place_of
from memoryspace.bench.policies.agent_trace import recorded
from memoryspace.bench.policies.off_policy import (
    doubly_robust,
    inverse_propensity,
    self_normalised,
    weighed,
)
from memoryspace.bench.policies.replaying import (
    FARTHEST,
    GCReplay,
    PolicyPaged,
    paged,
    replay_paging,
)
from memoryspace.bench.policies.traces import (
    ENDED,
    STORED,
    USED,
    TraceRecorder,
    TraceStep,
    peak_bytes,
    read_trace,
    write_trace,
)
from memoryspace.bench.studies.accesses import WORKLOADS, Load
from memoryspace.bench.studies.agents import Order, Worked, text_of
from memoryspace.bench.studies.crash import tear
from memoryspace.bench.studies.crash_writer import Order as CrashOrder
from memoryspace.bench.studies.crash_writer import Writer, open_space
from memoryspace.errors import CorruptData, InvalidInput
from memoryspace.kernel import BanditGCPolicy, MemoryManager, PeriodicGCPolicy, Runtime
from memoryspace.kernel.gc.policies import GCPolicy, HeapFigures
from memoryspace.kernel.tiers.replacement import POLICIES
from memoryspace.testing import ManualClock

import servers
from backends import server_url

SMALL: Mapping[str, Mapping[str, Any]] = {
    "system": {"objects": (600,)},
    "workloads": {"strategies": ("arc",), "keys": 100, "accesses": 120, "flush_every": 30},
    "crash": {"records": (150,), "syncs": ("always", "os"), "kills": 2},
    "concurrency": {"threads": (3,), "tasks": (5,), "processes": (2,), "records": 12},
    "stores": {
        "backends": ("memory", "space", "space-os", "sqlite"), "records": (100,), "rounds": 2,
    },
    "policies": {"steps": 1200, "hot_shares": (0.2,), "epsilons": (0.3,)},
    "compaction": {"budgets": (1000,)},
    "tasks": {},
}  # fmt: skip


def small(name: str) -> Options:
    """Options of an experiment that take a second or two."""
    return replace(catalogue.experiment(name).options.quick(), seeds=(1,), **SMALL[name])


def steady(folder: Path, name: str) -> dict[str, Any]:
    """What must be the same each time: everything but times and the machine."""
    found: dict[str, Any] = json.loads((folder / name / f"{name}.json").read_bytes())
    del found["environment"]
    for group in found["groups"]:
        assert group["figures"]
        del group["timed"]
    return found


@dataclass(frozen=True)
class Study:
    """What a small run of an experiment came to."""

    findings: Findings
    folder: Path

    @property
    def figures(self) -> list[dict[str, Any]]:
        """The cell, the figures and the timings of each group."""
        return [
            {**group.cell, **{key: value.mean for key, value in group.figures.items()}}
            | {key: value.mean for key, value in group.timings.items()}
            for group in self.findings.groups
        ]


def study(name: str, folder: Path, **changed: Any) -> Study:
    """Run an experiment, without its plots, which take their time."""
    experiment = replace(catalogue.experiment(name), plots=())
    outcome = run_experiment(experiment, replace(small(name), **changed), out=folder)
    return Study(outcome.findings, folder)


@pytest.fixture(scope="module")
def studied(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Study]:
    """Each experiment, run once for all tests."""
    return cache(lambda name: study(name, tmp_path_factory.mktemp(name)))


@pytest.mark.parametrize("name", ["system", "workloads", "policies", "compaction", "tasks"])
def test_a_study_says_the_same_each_time(
    name: str, studied: Callable[[str], Study], tmp_path: Path
) -> None:
    study(name, tmp_path)
    first, second = steady(studied(name).folder, name), steady(tmp_path, name)
    del first["claims"], second["claims"]  # some are about times
    assert first == second


@pytest.mark.parametrize("name", SMALL)
def test_a_study_resumes_and_shows_only_what_it_has_measured(
    name: str, studied: Callable[[str], Study]
) -> None:
    def again(cell: Any, data: Any) -> CellResult:
        pytest.fail("it was done already")

    declared, folder = catalogue.experiment(name), studied(name).folder
    outcome = run_experiment(replace(declared, run=again, plots=()), small(name), out=folder)
    groups = outcome.findings.groups
    assert Study(outcome.findings, folder).figures == studied(name).figures
    assert not outcome.findings.skipped
    values = {key for group in groups for key in [*group.figures, *group.timings]}
    assert {column for table in declared.tables for column in table.columns} <= values
    results = [run.result for group in groups for run in group.runs]
    series = {key for each in results for key in [*each.series, *each.timed_series]}
    cells = {key for group in groups for key in group.cell} | {""}
    for plot in declared.plots:
        assert {plot.group, plot.facet} - {plot.parts} <= cells, plot.name
        if plot.kind in ("series", "cdf"):
            assert {plot.y, plot.x} - {""} <= series, plot.name
        else:
            parts = {key.partition(" [")[0] for key in values}
            assert plot.y in (parts if plot.parts else values), plot.name
            assert {plot.x} - {plot.parts} <= cells, plot.name
        assert not plot.where or outcome.findings.where(plot.where), plot.name


# -- measuring -------------------------------------------------------------------------------------


def test_percentiles_spreads_and_histograms_say_what_is_there() -> None:
    values = [float(number) for number in range(1, 101)]
    assert [percentile(values, percent) for percent in (0, 50, 99, 100)] == [1, 50, 99, 100]
    assert spread("wait", [2e-6, 1e-6]) == {
        "wait_p50_us": 1.0, "wait_p99_us": 2.0, "wait_max_us": 2.0,
    }  # fmt: skip
    assert spread("wait", []) == {}
    bounds, counts = histogram([0.0, 1.0, 1.0, 1.1, 4.0])
    assert (bounds[0], bounds[-1], sum(counts)) == (1.0, 4.0, 4)
    assert counts[0] == 2
    assert histogram([]) == ([], [])


# -- system ----------------------------------------------------------------------------------------


def test_a_grown_space_finds_everything_and_frees_exactly_the_garbage(
    studied: Callable[[str], Study],
) -> None:
    (found,) = studied("system").figures
    assert found["hit@1"] == 1
    assert 0 < found["garbage"] == found["freed"] < 600
    assert found["store_per_s"] > 0
    assert found["pause_p50_ms"] <= found["pause_p99_ms"] <= found["pause_max_ms"]


# -- workloads -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_workload_is_the_same_for_the_same_seed_and_asks_only_for_what_is_there(
    name: str,
) -> None:
    def drawn(seed: int) -> list[Any]:
        load = Load(200, 1000, seed)
        return [*load.first(), *WORKLOADS[name](load)]

    accesses = drawn(1)
    assert accesses == drawn(1) != drawn(2)
    there = 0
    for access in accesses:
        if access.verb == "store":
            assert access.key == there
            there += 1
        assert 0 <= access.key < there
        assert (access.size > 0) == (access.verb != "read")
    reads = sum(access.verb == "read" for access in accesses[200:])
    assert len(accesses) == 1200
    assert (reads > 800) == (name != "write-heavy")


def test_a_scan_reads_a_fifth_of_all_in_a_row_and_a_hotspot_stays_small() -> None:
    load = Load(200, 1000, 1)
    scanned = [access.key for access in WORKLOADS["scan-polluted"](load)][100:140]
    assert scanned == list(range(40, 80))
    load = Load(1000, 1000, 1)
    spot = [access.key for access in WORKLOADS["moving-hotspot"](load)][:50]
    assert max(sum((key - start) % 1000 < 40 for key in spot) for start in spot) >= 35


def test_write_through_writes_every_change_and_write_back_at_most_as_many(
    studied: Callable[[str], Study],
) -> None:
    found = studied("workloads").figures
    through = [each for each in found if each["writes"] == "write_through"]
    for each in through:
        back = next(
            other
            for other in found
            if other["writes"] == "write_back"
            and (other["workload"], other["strategy"]) == (each["workload"], each["strategy"])
        )
        assert back["page_writes"] <= each["page_writes"]
        assert back["hot_kb"] == each["hot_kb"]
        assert each["write_amplification"] > 1.9, "journal and cold tier"
        assert each["journal_kb"] == back["journal_kb"] > each["asked_to_write_kb"]
    assert all(0 < each["hit_rate"] < 1 for each in found)


# -- crash -----------------------------------------------------------------------------------------


def test_a_killed_writer_loses_nothing_and_the_window_is_as_the_policy_promises(
    studied: Callable[[str], Study],
) -> None:
    found = studied("crash").figures
    assert {each["end"] for each in found} == {"killed", "torn"}
    for each in found:
        assert each["lost"] == each["doubled"] == each["changed"] == each["holes"] == 0
        assert each["acknowledged"] >= 150
        assert (each["window_records"] == 0) == (each["sync"] == "always")
    assert any(each["torn_tails"] for each in found if each["end"] == "torn")


def test_a_torn_journal_loses_its_last_change_and_no_other(tmp_path: Path) -> None:
    order = CrashOrder(str(tmp_path), "os", 1 << 30, 0, 0)
    with open_space(order) as space:
        writer = Writer(space, 0)
        for _ in range(5):
            writer.store(1)
    assert tear(tmp_path, random.Random(1)) > 0
    with open_space(order) as space:
        assert sorted(each.payload["n"] for each in space.objects()) == [0, 1, 2, 3]
        assert space.wal is not None
        assert space.wal.torn is not None


# -- concurrency and backends ----------------------------------------------------------------------


def test_agents_of_every_kind_lose_and_double_nothing(studied: Callable[[str], Study]) -> None:
    found = studied("concurrency").figures
    assert {(each["kind"], each["backend"]) for each in found} == {
        ("threads", "space"), ("tasks", "space"), ("processes", "space"), ("processes", "sqlite"),
    }  # fmt: skip
    for each in found:
        assert each["acknowledged"] == each["agents"] * 12
        assert each["lost"] == each["doubled"] == each["strange"] == each["out_of_order"] == 0
        assert each["per_s"] > 0


def test_what_is_lost_doubled_strange_or_out_of_order_is_counted() -> None:
    from memoryspace.bench.studies.concurrency import _result

    worked = [Worked(0.0, 1.0, [0.1, 0.2], wrong=1), Worked(0.5, 2.0, [0.1, 0.3])]
    found = ["0000-000001", "0000-000000", "0000-000000", "0001-000000", "0009-000000"]
    result = _result({"agents": 2, "records": 2}, worked, found)
    assert result.figures == {
        "acknowledged": 4, "lost": 1, "doubled": 1, "strange": 2, "out_of_order": 2,
    }  # fmt: skip
    assert result.timings["per_s"] == 2


def test_every_backend_answers_as_the_others_do(studied: Callable[[str], Study]) -> None:
    found = studied("stores").figures
    assert len(found) == 4
    for each in found:
        assert each["wrong"] == 0
        assert each["records"] == 100
        assert each["append_p50_us"] > 0


def test_a_server_is_named_in_the_environment_and_its_address_stays_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE + "REDIS", raising=False)
    with pytest.raises(CannotRun, match="MEMORYSPACE_BENCH_REDIS"):
        place_of("redis", str(tmp_path))
    address = server_url("redis")
    monkeypatch.setenv(VARIABLE + "REDIS", address)
    (store,) = study("stores", tmp_path, backends=("redis",)).figures
    assert store["wrong"] == 0
    only = {"threads": (), "tasks": (), "syncs": ()}
    agents = study("concurrency", tmp_path, backends=("redis",), **only).figures
    assert [(each["backend"], each["lost"], each["doubled"]) for each in agents] == [
        ("redis", 0, 0)
    ]
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert address.encode() not in written
    assert servers.KINDS["redis"].name in STORE_BACKENDS


# -- traces ----------------------------------------------------------------------------------------


def test_what_happens_in_a_space_is_recorded_and_reads_back(tmp_path: Path) -> None:
    clock = ManualClock(100.0)
    with MemoryManager(1 << 16, runtime=Runtime(clock=clock)) as space:
        before = space.store({"text": "unknown to the recorder"}, root=True)
        with TraceRecorder(space.events) as recorder:
            first = space.store({"text": "a first note"}, root=True)
            clock.advance(2)
            second = space.store({"text": "another"}, root=True)
            space.load(first.id)
            space.load(before.id)
            assert space.retrieve("another")[0].object.id == second.id
            clock.advance(1)
            space.free_object(first.id)
        space.store({"text": "not recorded"}, root=True)
    assert recorder.steps == [
        TraceStep(0.0, STORED, 0, first.size), TraceStep(2.0, STORED, 1, second.size),
        TraceStep(2.0, USED, 0), TraceStep(2.0, USED, 1), TraceStep(3.0, ENDED, 0),
    ]  # fmt: skip
    assert peak_bytes(recorder.steps) == first.size + second.size
    write_trace(tmp_path / "trace.gz", recorder.steps, {"what": "a test"})
    assert read_trace(tmp_path / "trace.gz") == (recorder.steps, {"what": "a test"})


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], "no access trace"),
        ([{"form": "another", "about": {}}], "in a known format: 'another'"),
        (["head", [0.0, "x", 1, 1]], "line 2 .* malformed"),
        (["head", [0.0, "s", 1, 5], [0.0, "s", 1, 5]], "line 3 .* cannot have happened"),
        (["head", [0.0, "u", 1, 0]], "line 2 .* cannot have happened"),
        (["head", [1.0, "s", 1, 5], [0.5, "u", 1, 0]], "line 3 .* cannot have happened"),
    ],
)
def test_a_trace_that_cannot_be_is_a_clear_error(
    lines: list[Any], said: str, tmp_path: Path
) -> None:
    head = {"form": "memoryspace access trace 1", "about": {}}
    text = "".join(json.dumps(head if line == "head" else line) + "\n" for line in lines)
    path = tmp_path / "trace.jsonl.gz"
    path.write_bytes(gzip.compress(text.encode()))
    with pytest.raises(CorruptData, match=said):
        read_trace(path)


def test_an_agent_is_recorded_as_it_is_and_the_same_each_time() -> None:
    text = " ".join(f"word{number:04}" for number in range(3000))
    steps = recorded(text, 600, 1)
    assert steps == recorded(text, 600, 1) != recorded(text, 600, 2)
    verbs = [step.verb for step in steps]
    assert min(verbs.count(verb) for verb in (STORED, USED, ENDED)) > 100


def test_a_trace_is_recorded_once_kept_and_taken_again(tmp_path: Path) -> None:
    study("policies", tmp_path, parts=("paging",))
    kept = tmp_path / "policies" / "trace-1.jsonl.gz"
    steps, about = read_trace(kept)
    assert about["seed"] == 1
    assert len(steps) >= 1200
    write_trace(kept, steps[: len(steps) // 2], about)  # to be told from a new one
    more = study("policies", tmp_path, parts=("paging", "gc")).figures
    paging = {each["uses"] for each in more if each["part"] == "paging"}
    assert paging == {sum(step.verb == USED for step in steps)}, "done before, on the whole trace"
    assert read_trace(kept)[0] == steps[: len(steps) // 2]
    longer = study("policies", tmp_path, parts=("paging",), steps=1500).figures
    assert longer[0]["uses"] > paging.pop(), "another trace was wanted"


def test_a_trace_of_ones_own_is_replayed(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl.gz"
    write_trace(path, _random_trace(random.Random(3), 800), {})
    found = study("policies", tmp_path, trace=path).figures
    assert {each["trace"].split()[0] for each in found} == {"mine.jsonl.gz"}
    with pytest.raises(InvalidInput, match=r"nothing\.gz cannot be read"):
        study("policies", tmp_path, trace=tmp_path / "nothing.gz")


# -- policies --------------------------------------------------------------------------------------


def _random_trace(draw: random.Random, count: int, size: int = 0) -> list[TraceStep]:
    steps: list[TraceStep] = []
    living: list[int] = []
    for number in range(count):
        chance = draw.random()
        if not living or chance < 0.3:
            steps.append(TraceStep(number / 100, STORED, number, size or draw.randint(20, 400)))
            living.append(number)
        elif chance < 0.9:
            recent = max(0, len(living) - 1 - int(draw.paretovariate(0.7)))
            steps.append(TraceStep(number / 100, USED, living[recent]))
        else:
            steps.append(TraceStep(number / 100, ENDED, living.pop(draw.randrange(len(living)))))
    return steps


@given(st.integers(0, 10_000), st.integers(1, 12), st.sampled_from(sorted(POLICIES)))
@settings(max_examples=60, deadline=None)
def test_nobody_beats_who_knows_the_future(seed: int, objects: int, policy: str) -> None:
    steps = _random_trace(random.Random(seed), 200, size=64)
    best, other = paged(FARTHEST, steps, 64 * objects), paged(policy, steps, 64 * objects)
    for paging in (best, other):
        assert len(replay_paging(paging, steps, 10)) == 10
    uses = sum(step.verb == USED for step in steps)
    assert best.hits + best.faults == other.hits + other.faults == uses
    assert best.hits >= other.hits


def test_with_room_for_everything_every_use_is_a_hit() -> None:
    steps = _random_trace(random.Random(1), 500)
    for policy in (*POLICIES, FARTHEST):
        paging = paged(policy, steps, 1 << 20)
        replay_paging(paging, steps, 1)
        assert (paging.faults, paging.evictions, paging.writes) == (0, 0, 0)
    tiny = PolicyPaged("lru", 64)
    replay_paging(tiny, steps, 1)
    assert tiny.faults > tiny.hits, "what is bigger than all of the hot tier is read where it is"


def test_a_replayed_space_frees_what_was_given_up_and_keeps_the_rest() -> None:
    steps = _random_trace(random.Random(5), 3000)
    ended = sum(step.verb == ENDED for step in steps)
    replay = GCReplay(BanditGCPolicy([PeriodicGCPolicy(1.0)], 0.0), 2 * peak_bytes(steps) + 65_536)
    freed: list[int] = []
    replay.space.events.subscribe(
        lambda event: freed.append(event.data["freed"]) if event.name == "gc_cycle" else None
    )
    replay.play(steps)
    assert 0 < sum(freed) <= ended
    assert len(freed) == len(replay.pauses) >= len(replay.bandit.decisions) > 10
    assert replay.freed == sum(each.freed_bytes for each in replay.bandit.decisions)


@dataclass(frozen=True)
class Arm(GCPolicy):
    """Always says yes."""

    def should_trigger(self, manager: HeapFigures, reason: str) -> bool:
        return True


@dataclass
class Heap:
    now: float = 0.0
    live_objects: int = 0
    capacity: int = 1000

    def fragmentation(self) -> float:
        return 0.0


@dataclass(frozen=True)
class Report:
    freed_bytes: int
    duration: float = 0.0


def played(seed: int, epsilon: float, rounds: int) -> BanditGCPolicy:
    """A bandit whose three arms free 100, 200 and 300 of 1000 bytes on the average."""
    draw = random.Random(seed)
    bandit = BanditGCPolicy([Arm(), Arm(), Arm()], epsilon, rng=random.Random(seed + 1))
    heap = Heap()
    for number in range(rounds):
        heap.now = float(number + 1)
        assert bandit.should_trigger(heap, "tick")
        bandit.notify_gc(heap, Report(int(draw.gauss(100 * (bandit.arm + 1), 60))))
    return bandit


@given(st.integers(0, 10_000), st.sampled_from([0.05, 0.2, 0.6]))
@settings(max_examples=20, deadline=None)
def test_a_propensity_is_the_chance_that_the_bandit_really_had(seed: int, epsilon: float) -> None:
    bandit = played(seed, epsilon, 150)
    log = weighed(bandit.decisions, 3, epsilon)
    greedy = 1 - epsilon + epsilon / 3
    for decision, each in zip(bandit.decisions, log, strict=True):
        assert each.propensity in (pytest.approx(greedy), pytest.approx(epsilon / 3))
        if not decision.explored:
            assert each.propensity == pytest.approx(greedy)
    assert log[0].expected == (0.0, 0.0, 0.0)


def test_estimates_from_the_log_come_out_at_the_truth() -> None:
    held = []
    for seed in range(40):
        log = weighed(played(seed, 0.3, 400).decisions, 3, 0.3)
        for arm in range(3):
            truth = (arm + 1) / 10
            robust, inverse = doubly_robust(log, arm), inverse_propensity(log, arm)
            held += [robust.holds(truth), inverse.holds(truth)]
            assert self_normalised(log, arm) == pytest.approx(truth, abs=0.04)
            assert robust.high - robust.low < inverse.high - inverse.low
    assert 0.9 < sum(held) / len(held) <= 1


def test_the_policy_study_counts_the_same_decisions_in_all_its_parts(
    studied: Callable[[str], Study],
) -> None:
    found = studied("policies").figures
    bandit = next(each for each in found if each["policy"] == "bandit")
    logged = [each for each in found if each["part"] == "off-policy"]
    assert {each["decisions"] for each in logged} == {bandit["decisions"]}
    assert sum(each["chosen"] for each in logged) == bandit["decisions"]
    fixed = {each["policy"]: each for each in found if each["part"] == "gc"}
    assert {each["policy"]: each["replayed"] for each in logged} == {
        name: each["reward"] for name, each in fixed.items() if name != "bandit"
    }
    best = max(each["reward"] for name, each in fixed.items() if name != "bandit")
    for each in fixed.values():
        assert each["regret_each"] == pytest.approx(best - each["reward"])


# -- compaction ------------------------------------------------------------------------------------


def test_nothing_leaves_our_context_for_good_and_the_others_lose_it(
    studied: Callable[[str], Study],
) -> None:
    found = {each["keeper"]: each for each in studied("compaction").figures}
    ours = found.pop("memoryspace")
    assert ours["found"] == ours["old_found"] == 1
    for other in found.values():
        assert other["n"] == ours["n"] > 50
        assert other["resident"] == other["named"] == other["found"] < ours["named"]
        assert other["longest"] <= 1050


def test_the_interval_of_a_share_draws_whole_runs() -> None:
    assert share([(1, 2), (3, 4)]) == pytest.approx(4 / 6)
    assert share_interval([(1, 2)] * 10) == (0.5, 0.5)
    low, high = share_interval([(0, 10), (10, 10)] * 20)
    assert 0.3 < low < 0.5 < high < 0.7


# -- processes -------------------------------------------------------------------------------------


def test_an_agent_process_says_what_it_did(tmp_path: Path) -> None:
    from memoryspace.bench.studies.concurrency import in_processes

    (worked,) = in_processes(Order(0, 3, "space", str(tmp_path), "os"), 1)
    assert len(worked.waits) == 3
    assert worked.wrong == 0
    with MemoryManager(1 << 28, folder=tmp_path / "agent-0", retriever=None) as space:
        assert [each.payload["text"] for each in space.objects()] == [
            text_of(f"0000-{number:06}") for number in range(3)
        ]
