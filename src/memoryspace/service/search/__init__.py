"""Search for services: a searcher returns memories by their seq, best first."""

from __future__ import annotations

from .contract import Found, Query, Searcher
from .resident import ResidentSearcher

__all__ = ["Found", "Query", "ResidentSearcher", "Searcher"]
