"""Records in a memory space: the embedded, durable backend."""

from __future__ import annotations

from .past import PastStore, RecordChange, changes_between, store_at
from .store import HOT_CAPACITY, SpaceStore

__all__ = [
    "HOT_CAPACITY",
    "PastStore",
    "RecordChange",
    "SpaceStore",
    "changes_between",
    "store_at",
]
