"""The prototype's experiments, the fair ones beside them, and the memories they compare."""

from __future__ import annotations

import csv
import gzip
import json
import random
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryspace.bench import CannotRun, Options, catalogue, run_experiment
from memoryspace.bench.experiments.hotpot import HotpotOptions, samples_of
from memoryspace.bench.harness import samples
from memoryspace.bench.memories.baselines import SampleMemory, SlidingMemory, WordCounts
from memoryspace.bench.memories.footprint import Footprint
from memoryspace.bench.memories.managed import COLLECTORS, managed, uncollected
from memoryspace.bench.memories.systems import QUICK, SYSTEMS
from memoryspace.bench.streams.asking import HITS
from memoryspace.bench.streams.playing import OverBudget, play
from memoryspace.bench.streams.queries import (
    Query,
    Stream,
    Targets,
    age_class,
    chunks,
    text_stream,
    words_of,
)
from memoryspace.errors import CorruptData, InvalidInput

SMALL: Mapping[str, Any] = {
    "limit": 60,
    "fair_limit": 80,
    "budgets": (4096,),
    "max_samples": 15,
    "sessions": 2,
    "paging_strategy": ("arc",),
    "collector_variants": ("ttl_mark",),
    "indexes": ("word counts",),
}
OURS = ("capacity-sweep", "hotpot", "long-context", "tiered", "gc-ablation")
BOUNDED = [name for name in QUICK if SYSTEMS[name].bounded]


def small(name: str) -> Options:
    """Options of an experiment that take a second."""
    options = catalogue.experiment(name).options.quick()
    known = {each.name for each in fields(options)}
    changed = {key: value for key, value in SMALL.items() if key in known}
    if "settings" in known:
        changed["settings"] = catalogue.experiment(name).options.full().settings  # type: ignore[attr-defined]  # it has them
    return replace(options, seeds=(1,), **changed)


def steady(folder: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / name / f"{name}.json").read_bytes())
    del found["environment"]
    for group in found["groups"]:
        del group["timed"]
    return found


@pytest.mark.parametrize("name", [*OURS, "locomo", "longmemeval", "beam", "zh"])
def test_an_experiment_runs_on_its_sample_and_says_the_same_each_time(
    name: str, tmp_path: Path
) -> None:
    experiment = catalogue.experiment(name)
    outcome = run_experiment(experiment, small(name), out=tmp_path / "one")
    assert {path.suffix for path in outcome.files} >= {".svg", ".png", ".html", ".csv"}
    if name in OURS:
        assert {group.cell["setting"] for group in outcome.findings.groups} >= {"seed", "fair"}
    run_experiment(replace(experiment, plots=()), small(name), out=tmp_path / "two")
    first = steady(tmp_path / "one", name)
    assert first == steady(tmp_path / "two", name)
    assert {each["cell"].get("task") for each in first["skipped"]} <= {"answers"}
    assert all(group["figures"]["n"]["mean"] > 0 for group in first["groups"])
    ranks = [(tmp_path / each / name / "ranks.jsonl.gz").read_bytes() for each in ("one", "two")]
    assert ranks[0] == ranks[1]


@pytest.mark.parametrize("name", OURS)
def test_published_figures_are_of_cells_that_there_are(name: str) -> None:
    experiment = catalogue.experiment(name)
    options = experiment.options()

    class Everything:
        label = ""

    labels = {label for each in experiment.published for label in _labels(each.where["data"])}
    cells: list[Any] = []
    for Everything.label in labels:
        cells += experiment.cells(options, Everything)  # type: ignore[arg-type]  # a label is all
    for each in experiment.published:
        chosen = [
            cell
            for cell in cells
            if all(cell.get(key) in _labels(value) for key, value in each.where.items())
        ]
        capacities = _labels(each.where.get("capacity"))
        assert chosen or set(capacities) & {12288, 16384}, each


def _labels(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def test_a_killed_run_of_a_real_experiment_goes_on_to_the_same_end(tmp_path: Path) -> None:
    flags = ["--settings", "seed", "--limit", "60", "--seeds", "3"]
    command = [sys.executable, "-m", "memoryspace.bench.capacity_sweep", *flags, "--out"]
    with subprocess.Popen(
        [*command, str(tmp_path / "cut")], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if re.search(rb"\b4 of \d+ cells", line):
                process.send_signal(signal.SIGKILL)
                break
        process.stderr.read()
    assert process.returncode == -signal.SIGKILL
    kept = (tmp_path / "cut" / "capacity-sweep" / "cells.jsonl").read_bytes().count(b"\n")
    assert 4 <= kept < 18
    for each in ("cut", "whole"):
        subprocess.run([*command, str(tmp_path / each)], check=True, capture_output=True)
    assert steady(tmp_path / "cut", "capacity-sweep") == steady(
        tmp_path / "whole", "capacity-sweep"
    )
    ranks = [tmp_path / each / "capacity-sweep" / "ranks.jsonl.gz" for each in ("cut", "whole")]
    assert ranks[0].read_bytes() == ranks[1].read_bytes()


@pytest.mark.parametrize(
    ("module", "flags"),
    [
        (
            "capacity_sweep",
            "--chunk-size 512 --limit 60 --capacities 4096 8192 --query-interval 10 "
            "--baselines sliding reservoir --collector-variants ttl_mark ttl_mark_gen --seeds 1",
        ),
        (
            "hotpot_benchmark",
            "--dataset-split train[:5000] --max-samples 5 --hot-capacity 32768 "
            "--sliding-window 4096",
        ),
        (
            "tiered_benchmark",
            "--limit 40 --query-interval 15 --fragmentation-threshold 0.4 --root-capacity 10 "
            "--paging-strategy lfu --write-policy write_back --promotion-batch 2",
        ),
        ("gc_ablation", "--limit 60 --seeds 1"),
        ("long_context_study", "--sessions 1 --seeds 1"),
    ],
)
def test_the_prototype_s_commands_do_its_work_and_no_more(
    module: str, flags: str, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", f"memoryspace.bench.{module}", *flags.split()]
    places = ["--out", str(tmp_path), "--output", str(tmp_path / "summary.csv")]
    done = subprocess.run([*command, *places], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "RuntimeWarning" not in done.stderr
    with (tmp_path / "summary.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert "hit@1" in rows[0]
    assert {row["setting"] for row in rows} == {"seed"}
    assert {row.get("index", "word counts") for row in rows} == {"word counts"}
    assert "GENERATED SAMPLE stands in" in done.stderr
    assert ("train[:5000] was asked for" in done.stderr) == ("train" in flags)


def test_a_plain_file_does_where_a_gzipped_one_is_named(tmp_path: Path) -> None:
    samples.write(["hotpotqa.jsonl.gz"], tmp_path)
    packed = tmp_path / "hotpotqa.jsonl.gz"
    (tmp_path / "hotpotqa.jsonl").write_bytes(gzip.decompress(packed.read_bytes()))
    packed.unlink()
    experiment = catalogue.experiment("hotpot")
    options = replace(small("hotpot"), settings=("seed",))  # type: ignore[call-arg]  # it has them
    for place in (tmp_path, tmp_path / "hotpotqa.jsonl"):
        outcome = run_experiment(experiment, options, out=tmp_path / "out", data_path=place)
        assert {group.cell["data"] for group in outcome.findings.groups} == {"hotpotqa"}


def test_a_split_gives_the_number_of_questions() -> None:
    assert samples_of(HotpotOptions(dataset_split="train[:200]")) == 200
    assert samples_of(HotpotOptions(dataset_split="validation", max_samples=7)) == 7
    with pytest.raises(InvalidInput, match="train"):
        samples_of(HotpotOptions(dataset_split="train[5:]"))


@pytest.mark.parametrize(
    ("name", "file", "content", "said"),
    [
        ("hotpot", "hotpotqa.jsonl.gz", b'{"id": 3}\n', "line 1 of .* is malformed"),
        ("tiered", "ufo.csv.gz", b"City,Shape\nIthaca,DISK\n", "must have the columns"),
        (
            "gc-ablation",
            "ufo.csv.gz",
            b"City,Colors Reported,Shape Reported,State,Time\nIthaca,DISK\n",
            "line 2 of .* is malformed",
        ),
    ],
)
def test_malformed_data_are_said_clearly(
    name: str, file: str, content: bytes, said: str, tmp_path: Path
) -> None:
    (tmp_path / file).write_bytes(gzip.compress(content))
    with pytest.raises(CorruptData, match=said):
        run_experiment(
            catalogue.experiment(name), small(name), out=tmp_path / "out", data_path=tmp_path / file
        )


# -- the memories --------------------------------------------------------------------------------

TEXTS = st.lists(st.text("abcd ", min_size=1, max_size=60), min_size=1, max_size=60)


@pytest.mark.parametrize("name", BOUNDED)
@settings(max_examples=15)
@given(texts=TEXTS)
def test_a_memory_keeps_its_budget_and_gives_back_what_it_was_given(
    name: str, texts: list[str]
) -> None:
    memory = SYSTEMS[name].make(2048, 1)
    try:
        for text in texts:
            memory.store(text)
            assert memory.bytes_used <= 2048
            assert set(memory.retrieve(text, 5)) <= set(texts)
        assert memory.figures()["kept"] >= 1
    finally:
        memory.close()


def test_a_text_that_does_not_fit_is_refused() -> None:
    with pytest.raises(InvalidInput, match="does not fit"):
        SlidingMemory(10).store("a text of more than ten bytes")


@pytest.mark.parametrize("collectors", sorted(set(COLLECTORS) - {"none"}))
@pytest.mark.parametrize("keep", ["used", "newest"])
def test_a_manager_with_any_collectors_makes_room(collectors: str, keep: Any) -> None:
    memory = managed(1000, collectors=collectors, keep=keep)
    for number in range(200):
        memory.store(f"note {number} of some length or other")
        memory.retrieve("note 0", 1)
    assert memory.bytes_used <= 1000
    assert ("note 0 of some length or other" in memory.retrieve("note 0", 1)) is (keep == "used")
    assert (memory.figures()["freed_by_hand"] > 0) is (collectors == "ttl")
    memory.manager.check()
    memory.close()


def test_without_collectors_a_full_memory_takes_nothing_more() -> None:
    memory = uncollected(100)
    for number in range(20):
        memory.store(f"a note of text {number:03}")
    assert memory.figures()["refused"] > 10
    assert memory.retrieve("note 000", 1) == ["a note of text 000"]
    memory.close()


def test_a_sample_is_fair() -> None:
    counts: Counter[int] = Counter()
    for seed in range(400):
        memory = SampleMemory(100, seed)
        for number in range(40):
            memory.store(f"{number:010}")
        kept = [int(text) for text in memory._texts.values()]
        assert len(kept) == 10
        counts.update(kept)
    assert min(counts.values()) > 60
    assert max(counts.values()) < 145  # each is expected 100 times


def test_word_counts_rank_by_cosine_and_the_newest_first() -> None:
    index = WordCounts()
    for key, text in enumerate(["a cat", "The CAT, the cat", "a dog", "a cat"]):
        index.add(key, text)
    assert [key for key, _ in index.search("cat", 5)] == [3, 1, 0] or [
        key for key, _ in index.search("cat", 5)
    ] == [3, 0, 1]
    assert index.search("bird", 5) == []
    assert index.search("cat", 5, allow=lambda key: key == 1)[0][0] == 1
    assert index.remove(1)
    assert not index.remove(1)
    assert 1 not in index


@pytest.mark.parametrize(
    ("system", "package"),
    [
        ("langchain", "langchain_core.embeddings"),
        ("mem0", "mem0"),
        ("agentscope-runtime", "agentscope_runtime.engine.schemas"),
    ],
)
def test_a_peer_that_is_not_installed_is_left_out(
    system: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(CannotRun, match="is not installed"):
        SYSTEMS[system].make(1000, 1)


@pytest.mark.parametrize("system", ["langchain", "mem0", "agentscope-runtime"])
def test_a_peer_that_is_installed_remembers_within_its_budget(system: str) -> None:
    try:
        memory = SYSTEMS[system].make(120, 1)
    except CannotRun as reason:
        pytest.skip(f"NO PACKAGE: {reason}")
    try:
        for number in range(8):
            memory.store(f"note {number} about the bright yellow house")
            assert memory.bytes_used <= 120
        found = memory.retrieve("note 7 about the bright yellow house", 3)
        assert "note 7 about the bright yellow house" in found
        assert "note 0 about the bright yellow house" not in found
    finally:
        memory.close()


# -- streams and playing -------------------------------------------------------------------------


@given(st.integers(1, 400), st.integers(0, 5))
def test_only_what_came_before_is_asked_for(count: int, seed: int) -> None:
    targets = Targets(count, random.Random(seed))
    for now in range(count):
        why, number = targets.pick(now)
        assert 0 <= number <= now
        assert why in ("recent", "any", "core")


def test_what_is_asked_for_is_recent_any_or_core() -> None:
    targets = Targets(10_000, random.Random(1))
    picked = [targets.pick(9_999) for _ in range(4000)]
    shares = Counter(why for why, _ in picked)
    assert shares["recent"] == pytest.approx(2000, abs=150)
    assert shares["core"] == pytest.approx(800, abs=120)
    assert len({number for why, number in picked if why == "core"}) <= 100
    ages = [9_999 - number for why, number in picked if why == "recent"]
    assert sum(age < 100 for age in ages) / len(ages) == pytest.approx(0.5, abs=0.05)


def test_chunks_overlap_and_cover_the_text() -> None:
    text = "".join(map(str, range(100)))
    pieces = chunks(text, 20, 5)
    assert pieces[0][-5:] == pieces[1][:5]
    assert "".join([pieces[0], *(piece[5:] for piece in pieces[1:])]) == text
    assert chunks("short", 20, 5) == ["short"]


@pytest.mark.parametrize(
    ("age", "shown"),
    [(0, "age below 10"), (9, "age below 10"), (10, "age 10 to 100"), (999, "age 100 to 1,000"),
     (1000, "age 1,000 to 10,000")],
)  # fmt: skip
def test_an_age_is_told_by_powers_of_ten(age: int, shown: str) -> None:
    assert age_class(age) == shown


def test_the_words_of_a_query_are_the_text_s_own() -> None:
    words = words_of("The bright yellow house stands alone", 3, random.Random(1)).split()
    assert len(words) == 3
    assert set(words) <= {"bright", "yellow", "house", "stands", "alone"}
    assert words_of("a b c", 3, random.Random(1)) == ""


class Forger:
    """A memory that cheats: it keeps too much, or answers what it never was told."""

    bytes_used = 0

    def __init__(self, answers: list[str]) -> None:
        self._answers = answers
        self.closed = False

    def store(self, text: str) -> None:
        pass

    def retrieve(self, query: str, k: int) -> list[str]:
        return self._answers

    def figures(self) -> Mapping[str, float]:
        return {}

    def footprint(self) -> Footprint:
        return Footprint(0)

    def close(self) -> None:
        self.closed = True


def test_only_a_text_that_comes_back_whole_counts() -> None:
    stream = Stream(["one text", "two text"], {1: [Query("q", "one", (0,))]})
    for answers, hits in (["one text"], 1.0), (["one"], 0.0), ([], 0.0):
        memory = Forger(answers)
        result = play(memory, stream, budget=None, metrics=HITS)
        assert result.figures["hit@1"] == hits
        assert memory.closed


def test_who_holds_more_than_was_given_is_found_out() -> None:
    memory = Forger([])
    memory.bytes_used = 101
    with pytest.raises(OverBudget, match="101 bytes are used, but the budget is 100"):
        play(memory, Stream(["text"], {}), budget=100, metrics=HITS)
    assert memory.closed


def test_delayed_recall_through_the_cold_tier_equals_the_flat_store_s() -> None:
    words = random.Random(3)
    texts = [" ".join(words.choices(WORDS, k=12)) for _ in range(400)]
    stream = text_stream(texts, every=4, words=5, seed=1)
    tiered = play(SYSTEMS["tiered"].make(4096, 1), stream, budget=4096, metrics=HITS)
    flat = play(SYSTEMS["unbounded"].make(0, 1), stream, budget=None, metrics=HITS)
    assert tiered.figures["hit@1"] == flat.figures["hit@1"]
    assert [asked.ranked for asked in tiered.ranks] == [asked.ranked for asked in flat.ranks]
    assert tiered.figures["cold_items"] > 300


def _invented() -> Iterator[str]:
    draw = random.Random(2)
    for _ in range(300):
        yield "".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=7))


WORDS = list(_invented())
