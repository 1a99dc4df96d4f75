"""The prototype's command line for ``memoryspace bench gc-ablation``."""

from __future__ import annotations

from .command import main_of
from .experiments.gc_ablation import EXPERIMENT

if __name__ == "__main__":
    main_of(EXPERIMENT)
