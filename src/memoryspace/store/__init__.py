"""Where records stand: one contract, several shelves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..extras import Lazy, lazily
from .contract import Store
from .memory import MemoryStore

if TYPE_CHECKING:
    from .redis import RedisStore
    from .space import SpaceStore
    from .sql import SQLStore

__all__ = ["MemoryStore", "RedisStore", "SQLStore", "SpaceStore", "Store"]

__getattr__ = lazily(
    __name__,
    {
        "SQLStore": Lazy("sql", "sqlalchemy", "sql"),
        "RedisStore": Lazy("redis", "redis", "redis"),
        "SpaceStore": Lazy("space"),
    },
)
