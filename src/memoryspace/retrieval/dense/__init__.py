"""Vector search by cosine, with the vectors of several models side by side."""

from __future__ import annotations

from .generations import Generations
from .index import DenseIndex

__all__ = ["DenseIndex", "Generations"]
