"""The board of lessons: what its measures mean, on a sample and on data that do not read."""

from __future__ import annotations

import pytest

from memoryspace.bench.boards.tasks import result_of
from memoryspace.bench.harness.samples import families
from memoryspace.errors import CorruptData
from memoryspace.evaluation.lessons import Family, Value, holds, judge, read_lessons
from memoryspace.service import ServiceSettings


async def test_what_runs_have_shown_is_found_and_what_they_have_not_is_not() -> None:
    rows = read_lessons(families())
    values = await judge(rows, ServiceSettings(embedder=None))
    figures = result_of(values).figures
    asked = sum(len(row.questions) for row in rows if isinstance(row, Family))
    assert figures["n"] == asked
    for right in ("first", "in_3", "stored", "silent", "tool_cause", "tool_figures"):
        assert figures[right] == 1, right
    for right in ("tool_silent", "used_right", "pruned_right", "in_3 [transfer]"):
        assert figures[right] == 1, right
    assert figures["misled"] == figures["stored_twice"] == 0


async def test_an_insight_that_no_run_has_shown_is_not_found() -> None:
    other = families().replace(b'"gold": ["', b'"gold": ["never said ')
    values = await judge(read_lessons(other), ServiceSettings(embedder=None))
    figures = result_of(values).figures
    assert figures["first"] == figures["in_3"] == figures["stored"] == 0
    assert figures["tool_cause"] == 0


def test_an_interval_is_over_whole_families() -> None:
    values = [Value("in_3", f"f{number % 2}", float(number % 2)) for number in range(40)]
    found = result_of(values)
    assert found.figures["in_3"] == 0.5
    assert found.intervals["in_3"] == (0, 1)


def test_white_space_and_case_do_not_matter() -> None:
    assert holds('Do: get({"Limit": 200})', ['"limit":200'])
    assert not holds("nothing", ["something"])


def test_other_data_are_refused() -> None:
    with pytest.raises(CorruptData, match="no families"):
        read_lessons(b'{"type": "other"}\n')
