"""Records in Tablestore: conditional writes in one table, documents in another."""

from __future__ import annotations

from .client import create_tablestore_client
from .store import TablestoreStore

__all__ = ["TablestoreStore", "create_tablestore_client"]
