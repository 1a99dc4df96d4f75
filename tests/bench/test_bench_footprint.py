"""What a memory really takes is counted, whatever its budget says."""

from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np
import pytest

from memoryspace.bench.experiments.capacity_sweep import EXPERIMENT, falls
from memoryspace.bench.harness.cells import Finished
from memoryspace.bench.harness.experiment import CellResult
from memoryspace.bench.harness.findings import NotMeasured, findings
from memoryspace.bench.memories.footprint import folder_bytes, reachable_bytes
from memoryspace.bench.memories.systems import QUICK, SYSTEMS
from memoryspace.bench.report.tables import claims
from memoryspace.retrieval import SparseIndex


def test_everything_that_can_be_reached_counts_once() -> None:
    array = np.zeros(100_000, np.uint8)
    text = "x" * 10_000
    once = reachable_bytes({"array": array})
    assert once > 100_000
    assert reachable_bytes([array, array, array[10:], {"text": [text, text]}]) - once < 11_000
    assert reachable_bytes([array[5:]]) > 100_000, "a view keeps the whole array"
    assert reachable_bytes([array], without=(array,)) < 200


def test_code_and_maps_and_what_all_indexes_share_are_not_counted() -> None:
    with mmap.mmap(-1, 1 << 20) as mapped:
        assert reachable_bytes([mapped, np, SparseIndex, len, lambda: None]) < 1000
    assert reachable_bytes(SparseIndex()) < 1 << 20


def test_files_count_what_they_occupy(tmp_path: Path) -> None:
    (tmp_path / "within").mkdir()
    (tmp_path / "within" / "file").write_bytes(b"x" * 100_000)
    assert 100_000 <= folder_bytes(tmp_path) < 200_000


@pytest.mark.parametrize("name", QUICK)
def test_a_memory_takes_no_less_than_what_it_remembers(name: str) -> None:
    memory = SYSTEMS[name].make(1 << 16, 1)
    try:
        before = memory.footprint()
        for number in range(60):
            memory.store(f"text number {number} " + "word " * 50)
        after = memory.footprint()
    finally:
        memory.close()
    assert after.resident - before.resident > 60 * 250
    assert after.index is not None
    assert before.index is not None
    assert before.index < after.index < after.resident
    assert (after.disk > 0) is (name == "tiered")


def test_a_fall_is_shown_beside_both_errors() -> None:
    def done(capacity: int, hit: float) -> Finished:
        cell = {"setting": "seed", "system": "manager", "index": "word counts",
                "collectors": "mark", "capacity": capacity, "seed": 1}  # fmt: skip
        return Finished(str(capacity), dict(cell), CellResult({"hit@1": hit, "n": 100.0}), 0.0)

    found = findings(EXPERIMENT, [done(4096, 0.9), done(8192, 0.865)])
    (fall,) = falls(found)
    assert (fall.by, fall.of_one) == pytest.approx((0.035, 0.03))
    assert fall.of_both == pytest.approx(0.0424, abs=1e-4)
    judged = {text.split(" (")[0][-30:]: holds for text, holds in claims(found)}
    assert judged["by more than the standard error of one mean"[-30:]] is False
    assert judged["that of the difference of two means"[-30:]] is True
    assert any("mark: -0.0350, error of one mean 0.0300" in text for text, _ in claims(found))
    with pytest.raises(NotMeasured):
        falls(findings(EXPERIMENT, []))
