"""The prototype's name for ``tiered``."""

from __future__ import annotations

from .command import main_of
from .tiered import EXPERIMENT

if __name__ == "__main__":
    main_of(EXPERIMENT)
