"""Benchmarks: each is a command that measures, shows and keeps figures in one form."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from memoryspace.bench import catalogue
from memoryspace.bench.command import main
from memoryspace.bench.harness.benchmark import Benchmark
from memoryspace.bench.harness.timing import CPU, Case, in_turns, per_call, side_by_side
from memoryspace.bench.report.benchmarks import markdown_of
from memoryspace.bench.report.charts import draw_charts
from memoryspace.bench.report.drawing import Picture
from memoryspace.errors import InvalidInput

RESULTS = Path(__file__).parents[2] / "results" / "benchmarks"
PEERS = {"working-memory", "embedding-cache", "service", "compaction-speed"}


def here(name: str) -> Benchmark:
    try:
        return catalogue.benchmark(name)
    except InvalidInput:
        assert name in PEERS
        pytest.skip(f"NO PACKAGE: {name} is measured beside a package that is not installed")


@pytest.mark.parametrize("name", catalogue.BENCHMARKS)
def test_a_benchmark_has_its_name_and_shows_what_was_committed(name: str) -> None:
    benchmark = here(name)
    assert benchmark.name == name
    benchmark.options.quick()
    path = RESULTS / f"{name}.json"
    if path.exists():
        document: Mapping[str, Any] = json.loads(path.read_bytes())
        assert markdown_of(benchmark, document) == path.with_suffix(".md").read_text("utf-8")


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("events", ["--calls", "5", "--rounds", "1"]),
        ("deriving-speed", ["--facts", "10", "--messages", "5"]),
        ("restart", ["--wait", "0", "--memories", "3", "--backends", "space", "sqlite"]),
        ("lessons", ["--runs", "6"]),
        ("import", ["--messages", "40", "--chats", "20"]),
        ("kernel", ["--only", "heap", "faces"]),
        ("door", ["--sizes", "30", "--adds", "2", "--questions", "2", "--systems", "memoryspace"]),
    ],
)
def test_a_quick_run_is_shown_and_kept_where_it_is_told(
    name: str, flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main([name, "--quick", *flags, "--out", str(tmp_path)])
    document = json.loads((tmp_path / f"{name}.json").read_bytes())
    assert document["benchmark"] == name
    assert document["environment"]["packages"]
    text = (tmp_path / f"{name}.md").read_text("utf-8")
    assert f"`memoryspace bench {name}`" in text
    for grid in catalogue.benchmark(name).tables(document["raw"]):
        assert grid.title in capsys.readouterr().out + text


def test_a_part_that_is_left_out_is_kept_from_the_last_run(tmp_path: Path) -> None:
    for part in ("heap", "faces"):
        main(["kernel", "--quick", "--only", part, "--out", str(tmp_path)])
    raw = json.loads((tmp_path / "kernel.json").read_bytes())["raw"]
    assert set(raw) == {"heap", "faces"}


def test_a_quick_run_touches_no_committed_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    main(["deriving-speed", "--quick", "--facts", "10", "--messages", "2"])
    assert list(tmp_path.iterdir()) == []
    assert "nothing was saved" in capsys.readouterr().out


def test_what_is_missing_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="--data-path"):
        main(["token-estimate"])
    with pytest.raises(SystemExit, match="there is no experiment 'nothing'"):
        main(["nothing"])


def test_charts_are_drawn_in_the_colours_of_all_plots() -> None:
    raw = {"curves": {"uses told": [[1.0, 2.0], [1.5, 2.5]], "uses not told": [[2.0, 4.0]]}}
    raw["board"] = {}
    drawn = draw_charts(catalogue.benchmark("lessons").charts(raw))
    assert isinstance(drawn, list)
    assert isinstance(drawn[0], Picture)
    assert "successes lost" in drawn[0].svg


async def test_two_sides_work_in_turns_and_the_median_ratio_counts() -> None:
    class Side:
        def __init__(self, name: str, *seconds: float) -> None:
            self.name, self.left = name, list(seconds)

    async def run(side: Side) -> float:
        return side.left.pop(0)

    theirs, ours = Side("theirs", 2.0, 9.0, 4.0), Side("ours", 1.0, 1.0, 1.0)
    row = await side_by_side(Case("work", 3.0, run), theirs, ours, 3)
    assert row["ratio"] == 4.0
    assert row["seconds"] == {"theirs": [2.0, 9.0, 4.0], "ours": [1.0, 1.0, 1.0]}


async def test_calls_are_timed_each_in_its_turn() -> None:
    order: list[str] = []
    times = in_turns({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, 2, repeats=2)
    assert order == ["a", "a", "b", "b"] * 2
    assert {name: len(each) for name, each in times.items()} == {"a": 2, "b": 2}

    async def nothing() -> None:
        return None

    assert await per_call([nothing] * 3, CPU) >= 0
