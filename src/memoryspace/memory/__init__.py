"""Working memory: what an agent is doing now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..extras import Lazy, lazily
from .base import MemoryBase
from .in_memory import InMemoryMemory
from .stored import StoredMemory

if TYPE_CHECKING:
    from .redis import RedisMemory
    from .space import SpaceMemory
    from .sql import AsyncSQLAlchemyMemory

__all__ = [
    "AsyncSQLAlchemyMemory",
    "InMemoryMemory",
    "MemoryBase",
    "RedisMemory",
    "SpaceMemory",
    "StoredMemory",
]

__getattr__ = lazily(
    __name__,
    {
        "AsyncSQLAlchemyMemory": Lazy("sql", "sqlalchemy", "sql"),
        "RedisMemory": Lazy("redis", "redis", "redis"),
        "SpaceMemory": Lazy("space"),
    },
)
