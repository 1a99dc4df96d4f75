"""Documents found by their words: a BM25 index that is always up to date."""

from __future__ import annotations

from .index import SparseIndex, WordGains

__all__ = ["SparseIndex", "WordGains"]
