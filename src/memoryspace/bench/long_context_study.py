"""The prototype's name for ``long_context``."""

from __future__ import annotations

from .command import main_of
from .long_context import EXPERIMENT

if __name__ == "__main__":
    main_of(EXPERIMENT)
