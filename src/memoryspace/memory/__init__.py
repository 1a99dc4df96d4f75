"""Working memory: what an agent is doing now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..extras import need
from .base import MemoryBase
from .in_memory import InMemoryMemory
from .stored import StoredMemory

if TYPE_CHECKING:
    from .redis import RedisMemory
    from .sql import AsyncSQLAlchemyMemory

__all__ = [
    "AsyncSQLAlchemyMemory",
    "InMemoryMemory",
    "MemoryBase",
    "RedisMemory",
    "StoredMemory",
]


def __getattr__(name: str) -> Any:
    if name == "AsyncSQLAlchemyMemory":
        need("sqlalchemy", "sql")
        from .sql import AsyncSQLAlchemyMemory

        return AsyncSQLAlchemyMemory
    if name == "RedisMemory":
        need("redis", "redis")
        from .redis import RedisMemory

        return RedisMemory
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
