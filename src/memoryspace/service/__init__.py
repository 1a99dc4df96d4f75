"""Long-term memory: one service, every backend, with or without a language model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..extras import Lazy, lazily
from .base import MemoryService
from .memory import Draft, MemoryItem
from .schema import Message, TextContent

if TYPE_CHECKING:
    from .factory import MemoryServiceFactory
    from .in_memory import InMemoryMemoryService
    from .long_term import (
        LongTermMemoryBase,
        ReMePersonalLongTermMemory,
        ReMeTaskLongTermMemory,
        ReMeToolLongTermMemory,
        ServiceLongTermMemory,
    )
    from .mem0 import Mem0LongTermMemory, Mem0MemoryService
    from .personal import PersonalMemoryService
    from .receipt import Receipt
    from .redis import RedisMemoryService
    from .results import Deleted, Erasure, MemoryHit, Page, Status
    from .settings import ServiceSettings
    from .space import SpaceMemoryService
    from .sql import SQLMemoryService
    from .stored import StoredMemoryService
    from .tablestore import TablestoreMemoryService, create_tablestore_client
    from .task import TaskMemoryService
    from .tool import ToolCallResult, ToolMemoryService

    ReMePersonalMemoryService = PersonalMemoryService
    ReMeTaskMemoryService = TaskMemoryService

__all__ = [
    "Deleted",
    "Draft",
    "Erasure",
    "InMemoryMemoryService",
    "LongTermMemoryBase",
    "Mem0LongTermMemory",
    "Mem0MemoryService",
    "MemoryHit",
    "MemoryItem",
    "MemoryService",
    "MemoryServiceFactory",
    "Message",
    "Page",
    "PersonalMemoryService",
    "ReMePersonalLongTermMemory",
    "ReMePersonalMemoryService",
    "ReMeTaskLongTermMemory",
    "ReMeTaskMemoryService",
    "ReMeToolLongTermMemory",
    "Receipt",
    "RedisMemoryService",
    "SQLMemoryService",
    "ServiceLongTermMemory",
    "ServiceSettings",
    "SpaceMemoryService",
    "Status",
    "StoredMemoryService",
    "TablestoreMemoryService",
    "TaskMemoryService",
    "TextContent",
    "ToolCallResult",
    "ToolMemoryService",
    "create_tablestore_client",
]

__getattr__ = lazily(
    __name__,
    {
        "Deleted": Lazy("results"),
        "Erasure": Lazy("results"),
        "InMemoryMemoryService": Lazy("in_memory"),
        "LongTermMemoryBase": Lazy("long_term"),
        "ReMePersonalLongTermMemory": Lazy("long_term"),
        "ReMeTaskLongTermMemory": Lazy("long_term"),
        "ReMeToolLongTermMemory": Lazy("long_term"),
        "ToolCallResult": Lazy("tool"),
        "Mem0LongTermMemory": Lazy("mem0"),
        "Mem0MemoryService": Lazy("mem0"),
        "MemoryHit": Lazy("results"),
        "MemoryServiceFactory": Lazy("factory"),
        "Page": Lazy("results"),
        "PersonalMemoryService": Lazy("personal"),
        "ReMePersonalMemoryService": Lazy("personal"),
        "ReMeTaskMemoryService": Lazy("task"),
        "Receipt": Lazy("receipt"),
        "RedisMemoryService": Lazy("redis", "redis", "redis"),
        "SQLMemoryService": Lazy("sql", "sqlalchemy", "sql postgres mysql"),
        "ServiceLongTermMemory": Lazy("long_term"),
        "ServiceSettings": Lazy("settings"),
        "SpaceMemoryService": Lazy("space"),
        "Status": Lazy("results"),
        "StoredMemoryService": Lazy("stored"),
        "TablestoreMemoryService": Lazy("tablestore", "tablestore_for_agent_memory", "tablestore"),
        "TaskMemoryService": Lazy("task"),
        "ToolMemoryService": Lazy("tool"),
        "create_tablestore_client": Lazy("tablestore", "tablestore", "tablestore"),
    },
)
