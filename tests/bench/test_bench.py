"""Experiments are run cell by cell, survive being killed, and say the same each time."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryspace.bench import (
    CellResult,
    Data,
    Experiment,
    Findings,
    bootstrap,
    catalogue,
    run_experiment,
)
from memoryspace.bench.command import main
from memoryspace.bench.harness.cells import CellFile, Finished
from memoryspace.bench.harness.intervals import student
from memoryspace.bench.harness.options import seeds_of
from memoryspace.bench.harness.progress import Progress
from memoryspace.bench.harness.samples import MAKERS
from memoryspace.bench.report.tables import grids, markdown, number, plain
from memoryspace.bench.running import open_data
from memoryspace.errors import CorruptData, InvalidInput, MemorySpaceError
from memoryspace.kernel import FolderInUse, FolderLock

from bench_toy import TOY, ToyOptions

QUICK = ToyOptions.quick()
DRAWN, TOY = TOY, replace(TOY, plots=())  # plots take their time


def document(folder: Path, name: str = "toy") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / name / f"{name}.json").read_bytes())
    return found


def steady(folder: Path) -> dict[str, Any]:
    """What must be the same each time: everything but times and the machine."""
    found = document(folder)
    del found["environment"]
    for group in found["groups"]:
        del group["timed"]
    return found


def counting(calls: list[Any], experiment: Experiment = TOY) -> Experiment:
    def run(cell: Any, data: Data) -> CellResult:
        calls.append(dict(cell))
        return experiment.run(cell, data)

    return replace(experiment, run=run)


# -- running -------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_numbers(tmp_path: Path) -> None:
    for name in ("one", "two"):
        run_experiment(TOY, ToyOptions(), out=tmp_path / name)
    assert steady(tmp_path / "one") == steady(tmp_path / "two")
    ranks = [(tmp_path / name / "toy" / "ranks.jsonl.gz").read_bytes() for name in ("one", "two")]
    assert ranks[0] == ranks[1]


def test_a_killed_run_goes_on_where_it_was_and_ends_like_one_that_was_not(tmp_path: Path) -> None:
    program = [
        sys.executable,
        str(Path(__file__).parents[1] / "support" / "bench_toy.py"),
        str(tmp_path / "cut"),
    ]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"waiting\n"
        process.kill()
    assert not (tmp_path / "cut" / "toy" / "toy.json").exists()
    with (tmp_path / "cut" / "toy" / "cells.jsonl").open("ab") as file:
        file.write(b'{"key": "torn')  # as if it had been killed while it wrote
    calls: list[Any] = []
    run_experiment(counting(calls), ToyOptions(), out=tmp_path / "cut")
    assert len(calls) == 12 - 3
    run_experiment(TOY, ToyOptions(), out=tmp_path / "whole")
    assert steady(tmp_path / "cut") == steady(tmp_path / "whole")
    cut, whole = (tmp_path / name / "toy" / "ranks.jsonl.gz" for name in ("cut", "whole"))
    assert cut.read_bytes() == whole.read_bytes()


def test_what_was_done_is_not_done_again_unless_asked_to(tmp_path: Path) -> None:
    calls: list[Any] = []
    experiment = counting(calls)
    run_experiment(experiment, QUICK, out=tmp_path)
    assert len(calls) == 4
    run_experiment(experiment, QUICK, out=tmp_path)
    assert len(calls) == 4
    run_experiment(experiment, QUICK, out=tmp_path, fresh=True)
    assert len(calls) == 8


def test_other_options_other_data_and_another_version_never_mix(tmp_path: Path) -> None:
    calls: list[Any] = []
    run_experiment(counting(calls), QUICK, out=tmp_path)
    run_experiment(counting(calls), replace(QUICK, share=0.6), out=tmp_path)
    assert {group["cell"]["share"] for group in document(tmp_path)["groups"]} == {0.6}
    other = tmp_path / "tinyshakespeare.txt.gz"
    other.write_bytes(gzip.compress(b"other words than in the sample"))
    run_experiment(counting(calls), QUICK, out=tmp_path, data_path=other)
    assert document(tmp_path)["data"]["label"] == "tinyshakespeare"
    run_experiment(counting(calls, replace(TOY, version=2)), QUICK, out=tmp_path)
    assert len(calls) == 16
    run_experiment(counting(calls), QUICK, out=tmp_path)
    assert len(calls) == 16, "what was done first is still there"


def test_a_cell_that_cannot_run_is_left_out_and_tried_again(tmp_path: Path) -> None:
    calls: list[Any] = []
    options = replace(QUICK, kinds=("good", "absent"))
    outcome = run_experiment(counting(calls), options, out=tmp_path)
    assert [group.cell["kind"] for group in outcome.findings.groups] == ["good"]
    assert len(document(tmp_path)["skipped"]) == 2
    assert "&lt;absent&gt; is not installed" in (tmp_path / "toy" / "toy.html").read_text()
    run_experiment(counting(calls), options, out=tmp_path)
    assert [call["kind"] for call in calls].count("absent") == 4


def test_two_runs_on_one_folder_do_not_meet(tmp_path: Path) -> None:
    with FolderLock(tmp_path / "toy"), pytest.raises(FolderInUse):
        run_experiment(TOY, QUICK, out=tmp_path)


def test_a_malformed_cell_a_wrong_figure_and_a_doubled_cell_are_said_clearly(
    tmp_path: Path,
) -> None:
    path = tmp_path / "toy" / "cells.jsonl"
    path.parent.mkdir()
    path.write_bytes(b'{"key": 3}\n')
    with pytest.raises(CorruptData, match=r"line 1 of .*cells\.jsonl.*--fresh"):
        run_experiment(TOY, QUICK, out=tmp_path)
    run_experiment(TOY, QUICK, out=tmp_path, fresh=True)
    nothing = replace(TOY, run=lambda cell, data: CellResult({"hit@1": float("nan")}))
    with pytest.raises(MemorySpaceError, match="hit@1 is not a number"):
        run_experiment(nothing, QUICK, out=tmp_path, fresh=True)
    doubled = replace(TOY, cells=lambda options, data: [{"seed": 1}, {"seed": 1}])
    with pytest.raises(InvalidInput, match="same cell twice"):
        run_experiment(doubled, QUICK, out=tmp_path)
    with pytest.raises(InvalidInput, match="nothing to run"):
        run_experiment(replace(TOY, cells=lambda options, data: []), QUICK, out=tmp_path)


def test_a_cell_is_kept_before_append_returns(tmp_path: Path) -> None:
    file = CellFile(tmp_path / "cells.jsonl")
    kept = Finished("key", {"seed": 1}, CellResult({"n": 1.0}), 0.5)
    file.append(kept)
    assert CellFile(tmp_path / "cells.jsonl").finished["key"].result.figures == {"n": 1.0}


# -- data ----------------------------------------------------------------------------------------


def test_data_are_found_in_a_folder_or_as_a_file_and_a_development_part_will_do(
    tmp_path: Path,
) -> None:
    (tmp_path / "tinyshakespeare_dev.txt.gz").write_bytes(gzip.compress(b"to be"))
    for path in (tmp_path, tmp_path / "tinyshakespeare_dev.txt.gz"):
        with open_data(TOY, QUICK, path) as data:
            assert data.bytes_of("tinyshakespeare.txt.gz") == b"to be"
            assert data.label == "tinyshakespeare_dev"


def test_missing_and_broken_data_are_said_clearly(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"has no file tinyshakespeare\.txt\.gz;"):
        run_experiment(TOY, QUICK, out=tmp_path / "out", data_path=tmp_path)
    with pytest.raises(InvalidInput, match="no such file or folder"):
        run_experiment(TOY, QUICK, out=tmp_path / "out", data_path=tmp_path / "absent")
    broken = tmp_path / "tinyshakespeare.txt.gz"
    broken.write_bytes(b"no gzip")
    with pytest.raises(CorruptData, match="does not unpack"):
        run_experiment(TOY, QUICK, out=tmp_path / "out", data_path=tmp_path)
    two = replace(TOY, files=lambda options: ("a", "b"))
    with pytest.raises(InvalidInput, match="pass a folder that holds a, b"):
        run_experiment(two, QUICK, out=tmp_path / "out", data_path=broken)
    with pytest.raises(InvalidInput, match="no sample of a"):
        run_experiment(two, QUICK, out=tmp_path / "out")


@pytest.mark.parametrize("name", MAKERS)
def test_a_sample_is_the_same_each_time(name: str) -> None:
    assert MAKERS[name]() == MAKERS[name]()


# -- figures -------------------------------------------------------------------------------------


def test_student_s_interval_is_that_of_the_books() -> None:
    assert student([1.0]) is None
    low, high = student([1.0, 2.0, 3.0]) or (0.0, 0.0)
    assert (low, high) == pytest.approx((2 - 2.4843, 2 + 2.4843), abs=1e-3)
    many = [float(value % 2) for value in range(101)]
    low, high = student(many) or (0.0, 0.0)
    assert high - low == pytest.approx(2 * 1.984 * 0.50243 / 101**0.5, rel=1e-3)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50))
def test_a_bootstrap_lies_within_the_values_and_is_the_same_each_time(values: list[float]) -> None:
    low, high = bootstrap(values, rounds=50)
    assert min(values) - 1e-6 <= low <= high <= max(values) + 1e-6
    assert (low, high) == bootstrap(values, rounds=50)


def test_groups_have_means_intervals_and_what_was_published(tmp_path: Path) -> None:
    run_experiment(TOY, ToyOptions(), out=tmp_path)
    groups = document(tmp_path)["groups"]
    assert [group["seeds"] for group in groups] == [[1, 2, 3]] * 4
    first = groups[0]
    assert first["cell"] == {"kind": "good", "size": 10, "share": 0.5}
    figure = first["figures"]["hit@1"]
    assert figure["n"] == 3
    assert figure["low"] < figure["mean"] < figure["high"]
    assert first["published"] == {"hit@1": 0.972}
    assert "timings" not in first
    assert first["timed"]["timings"]["seconds"]["n"] == 3
    claims = [claim["holds"] for claim in document(tmp_path)["claims"]]
    assert claims == [True, False, None]


def test_the_environment_is_told_and_no_path_of_the_user(tmp_path: Path) -> None:
    other = tmp_path / "secret-place" / "tinyshakespeare.txt.gz"
    other.parent.mkdir()
    other.write_bytes(gzip.compress(b"to be or not"))
    run_experiment(TOY, QUICK, out=tmp_path / "out", data_path=other)
    told = document(tmp_path / "out")
    for name in ("cpu", "cores", "memory_bytes", "python", "packages", "commit"):
        assert name in told["environment"]
    assert told["environment"]["packages"]["memoryspace"]
    assert len(told["data"]["sha256"]["tinyshakespeare.txt.gz"]) == 64
    for path in (tmp_path / "out" / "toy").iterdir():
        assert b"secret-place" not in path.read_bytes()


def test_tables_show_what_differs_and_parts_as_rows(tmp_path: Path) -> None:
    found: Findings = run_experiment(TOY, ToyOptions(), out=tmp_path).findings
    everything, by_age = list(grids(found))  # the one with nothing in it is left out
    assert everything.head == ("kind", "size", "seeds", "hit@1", "seconds", "hit@1 (published)")
    assert [row[-1] for row in everything.rows] == ["0.972", "", "", ""]
    assert "±" in everything.rows[0][3]
    assert [row[:3] for row in by_age.rows][:2] == [("good", "10", "old"), ("good", "10", "new")]
    assert plain(by_age).splitlines()[0] == "By age"
    assert markdown(by_age).splitlines()[1].count("---:") == 2


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0"), (1.0, "1"), (12345, "12,345"), (0.97214, "0.972"), (0.00123, "0.0012"),
     (45.678, "45.7"), (1234.5, "1,234")],
)  # fmt: skip
def test_a_number_has_as_many_digits_as_one_reads(value: float, shown: str) -> None:
    assert number(value) == shown


# -- what is written -----------------------------------------------------------------------------


def test_the_page_stands_alone_and_escapes_all_text(tmp_path: Path) -> None:
    run_experiment(DRAWN, ToyOptions(), out=tmp_path)
    page = (tmp_path / "toy" / "toy.html").read_text("utf-8")
    assert "what &lt;toys&gt; are worth" in page
    assert "<toys>" not in page
    assert "<kinds>" not in page
    assert page.count("<svg") == 6
    for loading in ("<script", "src=", "@import", 'href="http'):
        assert loading not in page
    assert "All &amp; everything" in page
    assert "the &lt;paper&gt;" in page


def test_plots_are_drawn_in_both_forms_and_the_same_each_time(tmp_path: Path) -> None:
    for name in ("one", "two"):
        run_experiment(DRAWN, ToyOptions(), out=tmp_path / name)
    names = {path.name for path in (tmp_path / "one" / "toy").glob("toy-*")}
    kinds = ("bars", "lines", "series", "cdf", "heat", "parts")
    assert names == {f"toy-{kind}.{form}" for kind in kinds for form in ("svg", "png")}
    for name in names:
        first, second = (tmp_path / each / "toy" / name for each in ("one", "two"))
        assert first.read_bytes() == second.read_bytes()
        assert first.stat().st_size > 1000


def test_without_matplotlib_there_is_a_line_and_all_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    outcome = run_experiment(DRAWN, QUICK, out=tmp_path)
    assert "memoryspace[bench]" in outcome.no_plots
    assert {path.suffix for path in outcome.files} == {".csv", ".json", ".md", ".gz", ".html"}
    assert "memoryspace[bench]" in (tmp_path / "toy" / "toy.html").read_text("utf-8")


def test_every_cell_is_a_line_of_the_csv_and_every_query_one_of_the_ranks(tmp_path: Path) -> None:
    run_experiment(TOY, ToyOptions(), out=tmp_path)
    lines = (tmp_path / "toy" / "toy.csv").read_text("utf-8").splitlines()
    assert lines[0] == "kind,size,share,seed,hit@1,hit@1 [old],hit@1 [new],seconds"
    assert len(lines) == 13
    ranks = gzip.decompress((tmp_path / "toy" / "ranks.jsonl.gz").read_bytes()).splitlines()
    assert len(ranks) == 12
    assert json.loads(ranks[0])["cell"] == {"kind": "good", "size": 10, "share": 0.5, "seed": 1}
    assert json.loads(ranks[0])["ranked"] == ["b", "a"]


# -- telling how far it is -----------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_a_bar_on_a_terminal_and_lines_elsewhere() -> None:
    now = [0.0]
    terminal, file = Terminal(), io.StringIO()
    for stream in (terminal, file):
        now[0] = 0.0
        progress = Progress(stream, "toy", lambda: now[0])
        progress.start(10, 4)
        now[0] = 60.0
        progress.tick(1, 2)
        progress.finish_cell("kind good", 60.0)
        progress.end()
    assert "4 of 10 cells were done before" in file.getvalue()
    assert "5 of 10 cells, 5 min 00 s left (kind good: 60.0 s)" in file.getvalue()
    assert "\r" not in file.getvalue()
    assert "█" in terminal.getvalue()
    assert "9 min 00 s" not in file.getvalue()
    assert "11 min 00 s left" in terminal.getvalue()


# -- options and commands ------------------------------------------------------------------------


@pytest.fixture
def toy_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "MODULES", {"toy": "bench_toy"})
    monkeypatch.setattr(catalogue, "experiment", lambda name: TOY)


@pytest.mark.usefixtures("toy_command")
def test_flags_come_from_the_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(
        ["toy", "--out", str(tmp_path), "--quick", "--seeds", "3", "--sizes", "5", "7",
         "--part", "0.25", "--slow", "--kinds", "good", "--output", str(tmp_path / "my" / "x.csv")]
    )  # fmt: skip
    told = document(tmp_path)["options"]
    assert told == {
        "seeds": [1, 2, 3],
        "sizes": [5, 7],
        "kinds": ["good"],
        "slow": True,
        "share": 0.25,
    }
    assert len((tmp_path / "my" / "x.csv").read_text().splitlines()) == 7
    output = capsys.readouterr()
    assert "All & everything" in output.out
    assert "not measured: never measured" in output.out
    assert str(tmp_path / "toy" / "toy.html") in output.out
    assert "6 of 6 cells" in output.err


@pytest.mark.usefixtures("toy_command")
def test_help_shows_every_flag_with_its_default(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["toy", "--help"])
    shown = capsys.readouterr().out
    for flag in ("--seeds", "--sizes", "--part", "--no-slow", "--data-path", "--fresh", "50 %"):
        assert flag in shown
    with pytest.raises(SystemExit):
        main(["toy", "--kinds", "ugly"])


@pytest.mark.usefixtures("toy_command")
def test_all_runs_everything_and_lists_what_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = replace(TOY, name="broken", files=lambda options: ("no such file",))
    found = {"broken": broken, "toy": TOY}
    monkeypatch.setattr(catalogue, "MODULES", dict.fromkeys(found, "bench_toy"))
    monkeypatch.setattr(catalogue, "experiment", found.__getitem__)
    with pytest.raises(SystemExit, match="broken could not be run"):
        main(["all", "--quick", "--seeds", "1", "--out", str(tmp_path)])
    assert (tmp_path / "toy" / "toy.html").exists()
    assert "toy/toy.html" in (tmp_path / "index.html").read_text("utf-8")
    assert "no sample of no such file" in capsys.readouterr().err


def test_one_number_is_how_many_seeds_and_several_are_which() -> None:
    assert seeds_of([3]) == (1, 2, 3)
    assert seeds_of([7, 11]) == (7, 11)
    with pytest.raises(InvalidInput, match="at least 1"):
        seeds_of([0])
    with pytest.raises(InvalidInput, match="twice"):
        seeds_of([7, 7])


def test_an_unknown_experiment_is_told_which_there_are() -> None:
    with pytest.raises(SystemExit, match=r"no experiment 'nonsense'; there are: .*locomo"):
        main(["nonsense"])


def test_the_list_names_every_experiment(capsys: pytest.CaptureFixture[str]) -> None:
    main(["list"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [*catalogue.MODULES, *catalogue.BENCHMARKS]
    main(["--help"])
    assert "fetch NAME" in capsys.readouterr().out


@pytest.mark.parametrize("name", catalogue.MODULES)
def test_every_experiment_is_called_what_the_catalogue_calls_it(name: str) -> None:
    experiment = catalogue.experiment(name)
    assert experiment.name == name
    assert experiment.about
    assert "\n" not in experiment.about
    experiment.options.quick()
