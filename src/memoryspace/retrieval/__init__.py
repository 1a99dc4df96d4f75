"""Retrieval: indexes over int keys, in memory, synchronous; ``analysis`` says what a text is."""

from __future__ import annotations

from .analysis import text_of, tokens
from .sparse import SparseIndex

__all__ = ["SparseIndex", "text_of", "tokens"]
