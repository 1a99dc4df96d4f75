"""Stores for records: one contract, and backends in RAM, a folder, SQL, Redis and Tablestore."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..extras import Lazy, lazily, listing
from .contract import Store
from .erasures import ErasureLedger
from .memory import MemoryStore
from .opening import Address, open_store
from .remains import Remainder, TellsRemains
from .staleness import stale_reads
from .users import Usage, UserPage
from .vectors import KeepsVectors, Kept, Place

if TYPE_CHECKING:
    from .redis import RedisStore
    from .space import SpaceStore
    from .sql import SQLStore
    from .tablestore import TablestoreStore

__all__ = [
    "Address",
    "ErasureLedger",
    "KeepsVectors",
    "Kept",
    "MemoryStore",
    "Place",
    "RedisStore",
    "Remainder",
    "SQLStore",
    "SpaceStore",
    "Store",
    "TablestoreStore",
    "TellsRemains",
    "Usage",
    "UserPage",
    "open_store",
    "stale_reads",
]

__dir__ = listing(__name__)
__getattr__ = lazily(
    __name__,
    {
        "SQLStore": Lazy("sql", "sqlalchemy", "sql postgres mysql"),
        "RedisStore": Lazy("redis", "redis", "redis"),
        "SpaceStore": Lazy("space"),
        "TablestoreStore": Lazy("tablestore", "tablestore_for_agent_memory", "tablestore"),
    },
)
