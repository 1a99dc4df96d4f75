"""The service on Tablestore, where the runtime has it."""

from __future__ import annotations

from ....service import TablestoreMemoryService
from ....service.tablestore import SearchStrategy

__all__ = ["SearchStrategy", "TablestoreMemoryService"]
