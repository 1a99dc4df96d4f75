"""Plots and intervals say no more than was measured."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryspace.bench.harness.cells import Finished
from memoryspace.bench.harness.experiment import CellResult, Experiment, Plot
from memoryspace.bench.harness.findings import Findings, findings
from memoryspace.bench.harness.intervals import interval, over_queries
from memoryspace.bench.harness.options import Options
from memoryspace.bench.memories.systems import SYSTEMS
from memoryspace.bench.report.colours import COLOURS, colours_of
from memoryspace.bench.report.drawing import Picture, draw
from memoryspace.bench.report.tables import estimate
from memoryspace.bench.streams.asking import Measured, measured


def found_in(plot: Plot, cells: list[tuple[dict[str, object], dict[str, float]]]) -> Findings:
    experiment = Experiment("drawn", "", Options, lambda o, d: [], lambda c, d: CellResult({}),
                            plots=(plot,))  # fmt: skip
    runs = [Finished(str(n), dict(cell), CellResult(figures), 0.0)  # type: ignore[arg-type]
            for n, (cell, figures) in enumerate(cells)]  # fmt: skip
    return findings(experiment, runs)


def picture(plot: Plot, cells: list[tuple[dict[str, object], dict[str, float]]]) -> Picture:
    drawn = draw(found_in(plot, cells))
    assert isinstance(drawn, list)
    return drawn[0]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_an_interval_of_a_share_lies_where_a_share_can_be(values: list[float]) -> None:
    told = interval("hit@1", values)
    assert told is None or (len(values) >= 3 and 0 <= told[0] <= told[1] <= 1)


def test_two_seeds_show_their_range_and_three_an_interval() -> None:
    cells = [({"seed": n}, {"hit@1": value}) for n, value in enumerate((0.1, 0.9))]
    two = found_in(Plot("p", "", "bars", "hit@1"), cells).groups[0]
    assert estimate(two.figures["hit@1"]) == "0.500 (0.100–0.900)"
    cells = [({"seed": n}, {"hit@1": value}) for n, value in enumerate((0.5, 0.51, 0.52))]
    three = found_in(Plot("p", "", "bars", "hit@1"), cells).groups[0]
    assert estimate(three.figures["hit@1"]) == "0.510 ± 0.025"


def test_all_hits_leave_a_doubt_that_falls_with_their_number() -> None:
    assert over_queries([1.0] * 10) == (pytest.approx(0.6915, abs=1e-4), 1.0)
    assert over_queries([0.0] * 100) == (0.0, pytest.approx(0.0362, abs=1e-4))


def test_every_category_has_an_interval() -> None:
    asked = [Measured("a", {"hit@1": n % 2}) for n in range(20)] + [Measured("b", {"hit@1": 1.0})]
    result = measured(asked)
    for name in ("hit@1", "hit@1 [a]", "hit@1 [b]"):
        low, high = result.intervals[name]
        assert 0 <= low <= result.figures[name] <= high <= 1


def test_points_measured_on_different_n_are_not_joined() -> None:
    plot = Plot("p", "", "lines", "hit@1", "size", "system")
    same = [({"system": "tiered", "size": size}, {"n": 9, "hit@1": 0.5}) for size in (1, 2, 3)]
    other = [(cell, {**figures, "n": n}) for n, (cell, figures) in enumerate(same)]
    drawn = re.compile(r'd="M [^"L]*L[^"]*"[^>]*stroke-width: 1.3')
    lines = [len(drawn.findall(picture(plot, cells).svg)) for cells in (same, other)]
    assert lines[0] > lines[1]
    assert "not joined" in picture(plot, other).caption
    assert "not joined" not in picture(plot, same).caption


def test_axes_begin_at_zero_or_say_that_they_do_not() -> None:
    cells = [({"size": size}, {"cost_us": size * 10.0}) for size in (100, 1000)]
    plain = picture(Plot("p", "", "lines", "cost_us", "size"), cells).svg
    assert ">0<" in plain
    assert "not from 0" not in plain
    assert "cost (µs)" in plain
    log = picture(Plot("p", "", "lines", "cost_us", "size", log_x=True, log_y=True), cells).svg
    assert log.count("log scale") == 2
    below = [({"size": size}, {"cost_us": -5.0 * size}) for size in (1, 2)]
    assert "not from 0" in picture(Plot("p", "", "lines", "cost_us", "size"), below).svg


def test_a_figure_stands_beside_another_in_panels() -> None:
    plot = Plot("p", "", "bars", "resident", "budget", "keeper",
                beside={"resident": "in the prompt", "named": "within reach"})  # fmt: skip
    shown = picture(plot, [({"budget": 1, "keeper": "a"}, {"resident": 0.2, "named": 0.9})]).svg
    assert "in the prompt" in shown
    assert "within reach" in shown


def test_no_two_labels_of_an_axis_overlap() -> None:
    names = [f"a category with a long name, number {n}" for n in range(9)]
    cells = [({"category": name}, {"hit@1": 0.5}) for name in names]
    svg = picture(Plot("p", "", "bars", "hit@1", "category"), cells).svg
    assert all(name in svg for name in names)
    assert "rotate(-40" in svg
    close = [({"size": size}, {"hit@1": 0.5}) for size in (1_000_000, 1_050_000, 90_000_000)]
    assert "rotate(-40" in picture(Plot("p", "", "lines", "hit@1", "size", log_x=True), close).svg


def test_a_system_has_the_same_colour_everywhere() -> None:
    assert set(SYSTEMS) <= set(COLOURS)
    assert colours_of(["tiered", "x"])["tiered"] == colours_of(["y", "tiered"])["tiered"]
    many = colours_of(["tiered", "x", "y"])
    assert len(set(many.values())) == 3
