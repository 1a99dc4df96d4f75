"""Every figure is checked against events whose times come from a clock set by hand."""

from __future__ import annotations

import csv
import json
import logging
import random
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryspace.errors import InvalidInput, StoreUnavailable
from memoryspace.events import Event, EventStream
from memoryspace.kernel.profiler import BATCH, SAMPLES, MemoryProfiler
from memoryspace.testing import ManualClock


def lines_of(path: Path | None) -> list[dict[str, Any]]:
    assert path is not None
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]


def rows_of(path: Path) -> list[dict[str, str]]:
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def hear_pauses(profiler: MemoryProfiler, *pauses: float) -> None:
    for pause in pauses:
        profiler(Event("gc_slice", 1.0, {"pause": pause}))


class Stubborn:
    def __str__(self) -> str:
        raise RuntimeError("no text")


def test_events_are_counted_by_name() -> None:
    events, profiler = EventStream(), MemoryProfiler()
    profiler.attach(events)
    for _ in range(3):
        events.emit("allocation", size=10)
    events.emit("free")
    assert profiler.count("allocation") == 3
    assert profiler.count("free") == 1
    assert profiler.count("gc_cycle") == 0


def test_the_summary_is_plain_data_with_the_times_of_the_run() -> None:
    clock = ManualClock(100.0)
    events, profiler = EventStream(clock=clock), MemoryProfiler("morning")
    profiler.attach(events)
    empty = {"run_id": "morning", "events": 0, "lost": 0, "first_at": None, "last_at": None}
    assert profiler.summary() == {**empty, "counts": {}, "numbers": {}}
    for freed in (10, 30, 20):
        events.emit("gc_cycle", freed=freed, trigger="threshold", full=True)
        clock.advance(5)
    events.emit("checkpoint")
    assert profiler.summary() == {
        "run_id": "morning",
        "events": 4,
        "lost": 0,
        "first_at": 100.0,
        "last_at": 115.0,
        "counts": {"checkpoint": 1, "gc_cycle": 3},
        "numbers": {
            "gc_cycle": {
                "freed": {"count": 3, "mean": 20.0, "p50": 20, "p95": 30, "p99": 30, "max": 30}
            }
        },
    }
    json.dumps(profiler.summary())


def test_percentiles_are_of_values_that_happened() -> None:
    profiler = MemoryProfiler()
    values = [number / 1000 for number in range(1, 101)]
    random.Random(1).shuffle(values)
    hear_pauses(profiler, *values)
    wanted = {0: 0.001, 1: 0.001, 50: 0.05, 99: 0.099, 99.5: 0.1, 100: 0.1}
    for percent, value in wanted.items():
        assert profiler.percentile("gc_slice", "pause", percent) == value


def test_what_was_never_heard_has_no_percentile() -> None:
    profiler = MemoryProfiler()
    hear_pauses(profiler, float("nan"))
    assert profiler.percentile("gc_slice", "pause", 50) is None
    assert profiler.percentile("gc_slice", "absent", 50) is None
    assert profiler.percentile("absent", "pause", 50) is None
    assert profiler.summary()["numbers"] == {"gc_slice": {"pause": {"count": 0}}}


@pytest.mark.parametrize("percent", [-0.1, 100.1, float("nan")])
def test_a_percentile_is_from_0_to_100(percent: float) -> None:
    with pytest.raises(InvalidInput, match="0 to 100"):
        MemoryProfiler().percentile("gc_slice", "pause", percent)


def test_samples_are_bounded_and_the_newest_but_totals_are_of_the_whole_run() -> None:
    profiler = MemoryProfiler()
    hear_pauses(profiler, 9.0, *[1.0] * (SAMPLES + 1000))
    assert profiler.percentile("gc_slice", "pause", 100) == 1.0
    facts = profiler.summary()["numbers"]["gc_slice"]["pause"]
    assert facts["count"] == SAMPLES + 1001
    assert facts["max"] == 9.0
    assert facts["mean"] == pytest.approx(1.0, abs=0.01)
    assert sum(count for _, count in profiler.pause_histogram()) == SAMPLES + 1001


def test_numbers_one_cannot_count_with_are_left_out() -> None:
    profiler = MemoryProfiler()
    for size in (1, float("inf"), 2, float("-inf"), float("nan"), 10**400, 3):
        profiler(Event("allocation", 1.0, {"size": size, "pinned": True, "id": "7", "none": None}))
    assert profiler.count("allocation") == 7
    facts = profiler.summary()["numbers"]["allocation"]
    assert list(facts) == ["size"]
    assert (facts["size"]["count"], facts["size"]["mean"]) == (3, 2.0)


def test_pauses_fall_into_powers_of_two_microseconds() -> None:
    profiler = MemoryProfiler()
    assert profiler.pause_histogram() == []
    hear_pauses(profiler, -1.0, 0.0, 1e-6, 1.5e-6, 2e-6, 2.1e-6, 16e-6, 17e-6)
    assert profiler.pause_histogram() == [
        (pytest.approx(bound * 1e-6), count)
        for bound, count in [(1, 3), (2, 2), (4, 1), (8, 0), (16, 1), (32, 1)]
    ]


def test_other_pauses_have_histograms_too() -> None:
    profiler = MemoryProfiler()
    profiler(Event("gc_cycle", 1.0, {"pause_duration": 0.001, "freed": 5}))
    assert profiler.pause_histogram("gc_cycle", "pause_duration") == [(pytest.approx(0.001024), 1)]
    assert profiler.pause_histogram("gc_cycle", "freed") == []
    hear_pauses(profiler, 1e300)
    assert len(profiler.pause_histogram()) == 1


@given(st.lists(st.floats(0, 1000), min_size=1, max_size=50))
def test_every_pause_is_in_the_bucket_it_belongs_to(pauses: list[float]) -> None:
    profiler = MemoryProfiler()
    hear_pauses(profiler, *pauses)
    histogram = profiler.pause_histogram()
    assert sum(count for _, count in histogram) == len(pauses)
    assert histogram[0][1] > 0
    assert histogram[-1][1] > 0
    slack = 1e-9  # pauses are told apart down to a nanosecond
    assert max(pauses) <= histogram[-1][0] + slack
    assert max(pauses) > histogram[-1][0] / 2 - slack or histogram[-1][0] == 1e-6


def test_the_chart_shows_a_bar_for_each_bucket() -> None:
    profiler = MemoryProfiler()
    assert profiler.pause_chart() == "gc_slice.pause: none"
    hear_pauses(profiler, *[0.0009] * 4, 0.003, 1.5)
    title, *bars = profiler.pause_chart().splitlines()
    assert title == "gc_slice.pause"
    assert len(bars) == 12
    assert (bars[0].count("█"), bars[1].count("█"), bars[2].count("█")) == (40, 0, 10)
    assert bars[0].startswith("≤   1.0 ms")
    assert bars[-1].startswith("≤    2.1 s")
    assert bars[-1].endswith(" 1")


def test_events_are_written_as_lines_in_their_order(tmp_path: Path) -> None:
    clock = ManualClock(7.0)
    events = EventStream(clock=clock)
    with MemoryProfiler("run-1", tmp_path / "deep" / "folder") as profiler:
        profiler.attach(events)
        for number in range(BATCH * 2 + 5):
            events.emit("allocation", number=number, text="two\nlines 记忆")
            clock.advance(1)
    assert profiler.path == tmp_path / "deep" / "folder" / "run-1.jsonl"
    lines = lines_of(profiler.path)
    assert [line["data"]["number"] for line in lines] == list(range(BATCH * 2 + 5))
    assert lines[3] == {
        "name": "allocation",
        "at": 10.0,
        "data": {"number": 3, "text": "two\nlines 记忆"},
    }
    assert profiler.lost == 0


def test_lines_are_written_in_batches_unless_told_otherwise(tmp_path: Path) -> None:
    slow = MemoryProfiler("slow", tmp_path)
    quick = MemoryProfiler("quick", tmp_path, write_immediately=True)
    for number in range(1, BATCH):
        for profiler in (slow, quick):
            profiler(Event("free", 1.0, {}))
        assert lines_of(slow.path) == []
        assert len(lines_of(quick.path)) == number
    slow(Event("free", 1.0, {}))
    assert len(lines_of(slow.path)) == BATCH
    slow(Event("free", 1.0, {}))
    slow.flush()
    assert len(lines_of(slow.path)) == BATCH + 1
    slow.close()
    quick.close()


def test_what_json_cannot_hold_is_written_as_text(tmp_path: Path) -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    odd: dict[str, Any] = {
        "path": Path("/x"),
        "error": ValueError("bad"),
        "when": datetime(2024, 1, 2, tzinfo=UTC),
        "surrogate": "\ud800",
        "huge": 2**80,
        "stubborn": Stubborn(),
        "inner": {"complex": 1j, (1, 2): 3},
        "cycle": cycle,
        "nan": float("nan"),
        "\ud801": 1,
    }
    with MemoryProfiler("odd", tmp_path) as profiler:
        profiler(Event("before", 1.0, {}))
        for field, value in odd.items():
            profiler(Event("odd", 1.0, {field: value, "beside": 1}))
        profiler(Event("odd", 1.0, odd))
        profiler(Event("na\ud800me", 1.0, {}))
    assert profiler.lost == 0
    lines = lines_of(profiler.path)
    assert lines[0]["name"] == "before"
    assert all(line["data"]["beside"] == 1 for line in lines[1:-2])
    together = lines[-2]["data"]
    assert together["path"] == "/x"
    assert together["error"] == "bad"
    assert together["when"].startswith("2024-01-02")
    assert together["surrogate"] == "\\ud800"
    assert int(together["huge"]) == 2**80
    assert together["stubborn"] == "<Stubborn without text>"
    assert together["inner"] == {"complex": "1j", "(1, 2)": 3}
    assert together["nan"] is None
    assert together["\\ud801"] == 1
    assert lines[-1]["name"] == "na\\ud800me"


def test_a_run_goes_on_in_its_file_even_after_a_torn_line(tmp_path: Path) -> None:
    for _ in range(2):
        with MemoryProfiler("run", tmp_path) as profiler:
            profiler(Event("free", 1.0, {}))
    path = tmp_path / "run.jsonl"
    assert len(lines_of(path)) == 2
    with open(path, "ab") as file:
        file.write(b'{"torn')
    with MemoryProfiler("run", tmp_path) as profiler:
        profiler(Event("free", 1.0, {}))
    lines = path.read_bytes().splitlines()
    assert lines[2] == b'{"torn'
    assert json.loads(lines[3])["name"] == "free"


@pytest.mark.parametrize("run_id", ["../up", "/etc/x", "a/b", "..", "a\0b", "Ann", "x" * 300, "记"])
def test_a_hostile_run_id_stays_in_its_folder(run_id: str, tmp_path: Path) -> None:
    with MemoryProfiler(run_id, tmp_path / "out") as profiler:
        profiler(Event("free", 1.0, {}))
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert [*(tmp_path / "out").iterdir()] == [profiler.path]
    assert profiler.summary()["run_id"] == run_id


def test_a_run_id_must_be_a_name() -> None:
    number: Any = 7
    with pytest.raises(TypeError, match="run_id"):
        MemoryProfiler(number)
    with pytest.raises(InvalidInput, match="run_id"):
        MemoryProfiler("")


def test_a_folder_that_cannot_be_written_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreUnavailable, match="output_dir"):
        MemoryProfiler("run", tmp_path / "file")


FULL_DISK = """
import json, logging, resource, sys
from pathlib import Path
from memoryspace.events import EventStream
from memoryspace.kernel.profiler import BATCH, MemoryProfiler
logging.basicConfig()
events, profiler = EventStream(), MemoryProfiler("run", sys.argv[1])
profiler.attach(events)
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
def emit(count):
    for number in range(count):
        events.emit("allocation", number=number, text="x" * 100)
emit(BATCH)
size = Path(profiler.path).stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 1000, hard))
emit(2 * BATCH)
assert profiler.lost == 2 * BATCH, profiler.lost
assert Path(profiler.path).stat().st_size == size
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
emit(BATCH)
profiler.close()
assert profiler.lost == 2 * BATCH
assert profiler.summary()["counts"] == {"allocation": 4 * BATCH}
assert profiler.summary()["lost"] == 2 * BATCH
numbers = [json.loads(line)["data"]["number"] for line in open(profiler.path)]
assert numbers == [*range(BATCH), *range(BATCH)]
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits on file sizes")
def test_a_full_disk_costs_whole_lines_that_are_counted(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FULL_DISK, str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stderr.count("could not be written") == 1
    assert "Traceback" not in run.stderr


def test_what_comes_after_closing_is_counted_as_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    events, profiler = EventStream(), MemoryProfiler("run", tmp_path)
    profiler.attach(events)
    events.emit("free")
    profiler.close()
    profiler.close()
    events.emit("free")
    assert (profiler.count("free"), profiler.lost) == (1, 0)
    with caplog.at_level(logging.WARNING):
        profiler(Event("free", 1.0, {}))
        assert (profiler.count("free"), profiler.lost) == (2, 1)
    assert "profiler.lost" in caplog.text
    assert len(lines_of(profiler.path)) == 1


def test_without_a_folder_nothing_is_written_and_nothing_lost() -> None:
    with MemoryProfiler() as profiler:
        profiler(Event("free", 1.0, {}))
    assert profiler.path is None
    assert profiler.lost == 0
    assert profiler.count("free") == 1


def test_one_stream_can_be_left_while_another_is_heard() -> None:
    first, second, profiler = EventStream(), EventStream(), MemoryProfiler()
    leave = profiler.attach(first)
    profiler.attach(second)
    leave()
    first.emit("free")
    second.emit("load")
    assert profiler.summary()["counts"] == {"load": 1}
    profiler.close()
    second.emit("load")
    assert profiler.summary()["counts"] == {"load": 1}


def test_threads_lose_no_event(tmp_path: Path) -> None:
    events = EventStream()
    with MemoryProfiler("threads", tmp_path) as profiler:
        profiler.attach(events)

        def work() -> None:
            for number in range(1000):
                events.emit("load", number=number)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert profiler.count("load") == 4000
    assert len(lines_of(profiler.path)) == 4000
    assert profiler.summary()["numbers"]["load"]["number"]["count"] == 4000


def test_an_event_from_within_the_writing_is_heard_too(tmp_path: Path) -> None:
    events = EventStream()

    class Talkative:
        def __str__(self) -> str:
            events.emit("asked")
            return "text"

    with MemoryProfiler("run", tmp_path, write_immediately=True) as profiler:
        profiler.attach(events)
        events.emit("load", value=Talkative())
    assert profiler.summary()["counts"] == {"asked": 1, "load": 1}
    assert sorted(line["name"] for line in lines_of(profiler.path)) == ["asked", "load"]


def test_the_table_has_a_row_for_each_number(tmp_path: Path) -> None:
    profiler = MemoryProfiler()
    for pause in (0.5, -0.25, 0.75):
        profiler(Event("gc_cycle", 1.0, {"pause_duration": pause, "freed": 4}))
    profiler(Event("checkpoint", 1.0, {"path": "x"}))
    path = tmp_path / "table.csv"
    path.write_text("old")
    profiler.write_csv(path)
    none = {"mean": "", "p50": "", "p95": "", "p99": "", "max": ""}
    assert rows_of(path) == [
        {"event": "checkpoint", "field": "", "count": "1", **none},
        {"event": "gc_cycle", "field": "freed", "count": "3", "mean": "4.0",
         "p50": "4", "p95": "4", "p99": "4", "max": "4"},
        {"event": "gc_cycle", "field": "pause_duration", "count": "3", "mean": str(1 / 3),
         "p50": "0.5", "p95": "0.75", "p99": "0.75", "max": "0.75"},
    ]  # fmt: skip


HOSTILE_CELLS: dict[str, str] = {
    "=1+1": "'=1+1",
    "+1": "'+1",
    "-1": "'-1",
    "@SUM(A1)": "'@SUM(A1)",
    "  =1": "'  =1",
    "\t=1": "\\x09=1",
    "＝1": "'＝1",
    "a,b\"c": "a,b\"c",
    "two\r\nlines": "two\\x0d\\x0alines",
    "nul\0": "nul\\x00",
    "\ud800": "\\xd800",
    "记忆 é": "记忆 é",
}  # fmt: skip


def test_no_cell_is_a_formula_or_breaks_the_table(tmp_path: Path) -> None:
    profiler = MemoryProfiler()
    for text in HOSTILE_CELLS:
        profiler(Event(text, 1.0, {text: 1}))
        profiler(Event("plain", 1.0, {text: 1}))
    profiler.write_csv(tmp_path / "table.csv")
    rows = rows_of(tmp_path / "table.csv")
    assert {row["event"] for row in rows} == {"plain", *HOSTILE_CELLS.values()}
    assert {row["field"] for row in rows} == {*HOSTILE_CELLS.values()}
    assert all(row["count"] == "1" and row["max"] == "1" for row in rows)
    assert len(rows) == 2 * len(HOSTILE_CELLS)


def test_the_listener_mechanism_takes_it_as_it_is() -> None:
    listener: Callable[[Event], None] = MemoryProfiler()
    events = EventStream(clock=ManualClock(3.0))
    events.subscribe(listener)
    events.emit("free")
    assert isinstance(listener, MemoryProfiler)
    assert listener.summary()["first_at"] == 3.0
