"""The prototype's command line for ``memoryspace bench long-context``."""

from __future__ import annotations

from .command import main_of
from .experiments.long_context import EXPERIMENT

if __name__ == "__main__":
    main_of(EXPERIMENT)
