"""Vectors found by their cosine to another; several models' side by side."""

from __future__ import annotations

from .generations import Generations
from .index import DenseIndex

__all__ = ["DenseIndex", "Generations"]
