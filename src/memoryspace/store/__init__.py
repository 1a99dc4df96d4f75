"""Where records stand: one contract, several shelves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..extras import need
from .contract import Store
from .memory import MemoryStore

if TYPE_CHECKING:
    from .redis import RedisStore
    from .sql import SQLStore

__all__ = ["MemoryStore", "RedisStore", "SQLStore", "Store"]


def __getattr__(name: str) -> Any:
    if name == "SQLStore":
        need("sqlalchemy", "sql")
        from .sql import SQLStore

        return SQLStore
    if name == "RedisStore":
        need("redis", "redis")
        from .redis import RedisStore

        return RedisStore
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
