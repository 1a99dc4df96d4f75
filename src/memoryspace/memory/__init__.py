"""Working memory: the messages of one conversation, and the window that shows what fits.

``InMemoryMemory``, ``SpaceMemory``, ``AsyncSQLAlchemyMemory`` and ``RedisMemory`` differ only in
where messages are stored. ``ContextWindow`` reads any of them within a token budget.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..extras import Lazy, lazily, listing
from .base import MemoryBase
from .in_memory import InMemoryMemory
from .stored import StoredMemory

if TYPE_CHECKING:
    from .long_term import (
        LongTermMemoryBase,
        Mem0LongTermMemory,
        ReMePersonalLongTermMemory,
        ReMeTaskLongTermMemory,
        ReMeToolLongTermMemory,
    )
    from .message_storage import InMemoryMessageStorage, MessageStorageBase
    from .redis import RedisMemory
    from .reme import ReMeShortTermMemory
    from .repairing import repair_memory
    from .space import SpaceMemory
    from .sql import AsyncSQLAlchemyMemory
    from .window import ContextWindow
    from .with_compress import MemoryWithCompress

__all__ = [
    "AsyncSQLAlchemyMemory",
    "ContextWindow",
    "InMemoryMemory",
    "InMemoryMessageStorage",
    "LongTermMemoryBase",
    "Mem0LongTermMemory",
    "MemoryBase",
    "MemoryWithCompress",
    "MessageStorageBase",
    "ReMePersonalLongTermMemory",
    "ReMeShortTermMemory",
    "ReMeTaskLongTermMemory",
    "ReMeToolLongTermMemory",
    "RedisMemory",
    "SpaceMemory",
    "StoredMemory",
    "repair_memory",
]

__dir__ = listing(__name__)
__getattr__ = lazily(
    __name__,
    {
        "AsyncSQLAlchemyMemory": Lazy("sql", "sqlalchemy", "sql postgres mysql"),
        "ContextWindow": Lazy("window"),
        "InMemoryMessageStorage": Lazy("message_storage"),
        "LongTermMemoryBase": Lazy("long_term"),
        "Mem0LongTermMemory": Lazy("long_term"),
        "MemoryWithCompress": Lazy("with_compress"),
        "MessageStorageBase": Lazy("message_storage"),
        "ReMePersonalLongTermMemory": Lazy("long_term"),
        "ReMeShortTermMemory": Lazy("reme"),
        "ReMeTaskLongTermMemory": Lazy("long_term"),
        "ReMeToolLongTermMemory": Lazy("long_term"),
        "RedisMemory": Lazy("redis", "redis", "redis"),
        "SpaceMemory": Lazy("space"),
        "repair_memory": Lazy("repairing"),
    },
)
