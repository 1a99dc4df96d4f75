"""Every test of the command line has a home of its own and searches by words: that is quick."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEMORYSPACE_HOME", str(folder))
    monkeypatch.setenv("MEMORYSPACE_EMBEDDER", "none")
    monkeypatch.setenv("MEMORYSPACE_USER", "ann")
    return folder
