"""Search inside PostgreSQL: the database selects candidates, a ``Recall`` ranks them."""

from __future__ import annotations

from .searcher import PostgresSearcher

__all__ = ["PostgresSearcher"]
