"""The prototype's command line for ``memoryspace bench tiered``."""

from __future__ import annotations

from .command import main_of
from .experiments.tiered import EXPERIMENT

if __name__ == "__main__":
    main_of(EXPERIMENT)
