"""The command line."""

from __future__ import annotations

import os
import subprocess
import sys


def test_a_reader_that_has_seen_enough_ends_the_command_quietly() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "memoryspace", "bench", "list"]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")
