"""Compatibility: the runtime's path of the Tablestore service."""

from __future__ import annotations

from ....service import TablestoreMemoryService
from ....service.tablestore import SearchStrategy

__all__ = ["SearchStrategy", "TablestoreMemoryService"]
