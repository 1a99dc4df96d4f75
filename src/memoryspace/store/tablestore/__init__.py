"""Records in Tablestore: a log table with conditional writes, and a table of documents."""

from __future__ import annotations

from .client import create_tablestore_client
from .store import TablestoreStore

__all__ = ["TablestoreStore", "create_tablestore_client"]
