"""Lazily loaded names of a package."""

from __future__ import annotations

import subprocess
import sys

import pytest

import memoryspace.service

PACKAGES = ["", ".agent", ".memory", ".model", ".service", ".session", ".store", ".testing"]


@pytest.mark.parametrize("name", PACKAGES)
def test_dir_shows_what_a_package_offers_before_it_is_loaded(name: str) -> None:
    script = (
        f"import sys, memoryspace{name} as package\n"
        "before = set(sys.modules)\n"
        "assert set(package.__all__) <= set(dir(package)), dir(package)\n"
        "assert set(sys.modules) == before\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_dir_still_shows_what_is_loaded() -> None:
    assert {"__name__", "base", "MemoryService"} <= set(dir(memoryspace.service))
    assert dir(memoryspace.service) == sorted(dir(memoryspace.service))
