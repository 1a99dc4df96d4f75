"""The benchmark of the front door: the same texts and questions for every memory."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from memoryspace.bench.command import main
from memoryspace.bench.speed.door import DoorOptions, corpora_of, work_of
from memoryspace.bench.speed.door_page import tables

OPTIONS = DoorOptions(adds=4, questions=5)


def is_installed(package: str) -> bool:
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


@pytest.mark.parametrize("size", [40, 500])
def test_every_question_is_about_something_stored(size: int) -> None:
    corpora, named = corpora_of(None)
    work = work_of(corpora, size, OPTIONS)
    assert named == "made up"
    assert (len(work.stored), len(work.added)) == (size, 4)
    assert work.asked
    assert all(each.gold <= set(work.stored) for each in work.asked)
    assert not set(work.added) & set(work.stored)
    assert work_of(corpora, size, OPTIONS) == work


def test_what_is_not_installed_is_left_out_and_named(tmp_path: Path) -> None:
    flags = ["--sizes", "30", "--adds", "2", "--questions", "2", "--rounds", "1"]
    main(["door", *flags, "--systems", "memoryspace", "chromadb", "--out", str(tmp_path)])
    raw = json.loads((tmp_path / "door.json").read_bytes())["raw"]
    [size] = raw["sizes"]
    assert size["systems"]["memoryspace"]["any"] == 1
    assert ("chromadb" in size["systems"]) is is_installed("chromadb")
    page = (tmp_path / "door.md").read_text("utf-8")
    assert ("chromadb is not installed" in page) is not is_installed("chromadb")
    assert "Not measured at 30: mem0" in page


def test_a_ratio_says_how_much_faster_or_slower_ours_is() -> None:
    one = {"p50": 1.0, "p99": 1.0, "bare_p50": 1.0, "cpu": 1.0, "settled": 1.0}
    scores = {"fill": 1.0, "reopen": 1.0, "disk_mb": 1.0, "any": 1.0, "fraction": 1.0, "mrr": 1.0}
    systems = {
        name: {**scores, "add": {**one, "rounds": adds}, "search": {**one, "rounds": searches}}
        for name, adds, searches in (
            ("memoryspace", [1.0, 2.0, 1.0], [4.0, 4.0, 4.0]),
            ("mem0ai", [3.0, 2.0, 9.0], [1.0, 1.0, 2.0]),
        )
    }
    size = {"size": 10, "asked": 3, "added": 3, "load": 1.0, "load_after": 1.0, "systems": systems}
    adds, searches, *_ = tables({"texts": "made up", "left_out": {}, "sizes": [size]})
    assert [row[-1] for row in adds.rows] == ["", "3.0× as fast"]
    assert [row[-1] for row in searches.rows] == ["", "4.0× as slow"]
