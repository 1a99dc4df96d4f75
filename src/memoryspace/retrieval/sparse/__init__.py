"""Word search: a BM25 index that can be updated at any time."""

from __future__ import annotations

from .index import SparseIndex, WordGains

__all__ = ["SparseIndex", "WordGains"]
