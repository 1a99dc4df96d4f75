"""A process that is killed while it moves memories loses nothing, and a repetition completes it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from length import at_length

WORKER = Path(__file__).parents[1] / "support" / "move_worker.py"
LIVES = at_length(4, 60)


def lives(work: str, kind: str, folder: Path) -> list[dict[str, Any]]:
    command = [sys.executable, str(WORKER), str(folder), work, kind, str(LIVES)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("kind", ["folder", "sqlite"])
def test_an_import_killed_anywhere_is_completed_by_repeating_it(kind: str, tmp_path: Path) -> None:
    found = lives("import", kind, tmp_path)
    killed = [each for each in found if "held" in each]
    whole = [each["is_whole"] for each in found if "is_whole" in each]
    assert whole == [True] * LIVES
    assert all(each["is_beginning"] for each in killed)
    assert all(each["held"] >= each["acknowledged"] for each in killed)
    assert sum(bool(each["died"]) for each in killed) >= LIVES // 2
    assert any(each["acknowledged"] > 0 for each in killed)


@pytest.mark.parametrize("kind", ["folder", "sqlite"])
def test_an_export_killed_anywhere_leaves_a_whole_file_or_none(kind: str, tmp_path: Path) -> None:
    found = lives("export", kind, tmp_path)
    assert all(each["is_whole"] for each in found if each["is_there"])
    assert all(each["is_there"] for each in found if not each["died"])
    assert sum(each["died"] for each in found) >= LIVES // 2
