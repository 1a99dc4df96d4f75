"""Search inside PostgreSQL: full-text candidates and vectors, ranked by our own engine."""

from __future__ import annotations

from .searcher import PostgresSearcher

__all__ = ["PostgresSearcher"]
