"""The prototype's command line for ``memoryspace bench hotpot``."""

from __future__ import annotations

from .command import main_of
from .experiments.hotpot import EXPERIMENT

if __name__ == "__main__":
    main_of(EXPERIMENT)
