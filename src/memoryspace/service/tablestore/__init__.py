"""Long-term memory in Tablestore: strongly consistent rows and a search index that may lag."""

from __future__ import annotations

from ...store.tablestore import TablestoreStore, create_tablestore_client
from .search import SearchStrategy, TablestoreSearcher
from .service import TablestoreMemoryService

__all__ = [
    "SearchStrategy",
    "TablestoreMemoryService",
    "TablestoreSearcher",
    "TablestoreStore",
    "create_tablestore_client",
]
