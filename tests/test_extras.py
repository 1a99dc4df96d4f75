"""Lazily loaded names of a package."""

from __future__ import annotations

import subprocess
import sys

import memoryspace.service


def test_dir_shows_the_services_before_they_are_loaded() -> None:
    script = (
        "import sys, memoryspace.service as service\n"
        "assert set(service.__all__) <= set(dir(service)), dir(service)\n"
        "assert 'memoryspace.service.stored' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_dir_still_shows_what_is_loaded() -> None:
    assert {"__name__", "base", "MemoryService"} <= set(dir(memoryspace.service))
    assert dir(memoryspace.service) == sorted(dir(memoryspace.service))
