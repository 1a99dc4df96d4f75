"""How far tests go: a quick run by default, the long one with ``MEMORYSPACE_TEST_LONG=1``.

The quick run proves the same things on fewer examples, kills and repetitions. ``make test-long``
runs the long one.
"""

from __future__ import annotations

import os
from typing import TypeVar

T = TypeVar("T")

LONG = bool(os.environ.get("MEMORYSPACE_TEST_LONG"))


def at_length(quick: T, long: T) -> T:
    """Return what fits the run."""
    return long if LONG else quick
