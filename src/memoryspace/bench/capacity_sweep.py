"""The prototype's command line for ``memoryspace bench capacity-sweep``."""

from __future__ import annotations

from .command import main_of
from .experiments.capacity_sweep import EXPERIMENT

if __name__ == "__main__":
    main_of(EXPERIMENT)
