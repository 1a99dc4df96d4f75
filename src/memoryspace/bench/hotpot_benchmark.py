"""The prototype's name for ``hotpot``."""

from __future__ import annotations

from .command import main_of
from .hotpot import EXPERIMENT

if __name__ == "__main__":
    main_of(EXPERIMENT)
