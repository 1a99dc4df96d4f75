"""Long-term memory services: one contract, many backends, with or without a language model.

    async with InMemoryMemoryService() as service:
        await service.add_memory("ann", ["I live in Oslo"])
        hits = await service.search("ann", "Where does Ann live?")

Services are imported on first use, so a backend's extra is needed only by those who use it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..extras import Lazy, lazily, listing
from .base import MemoryService
from .schema import Message, TextContent
from .values.memory import Draft, MemoryItem

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
    from .redis import RedisMemoryService
    from .settings import ServiceSettings
    from .space import SpaceMemoryService
    from .sql import SQLMemoryService
    from .stored import StoredMemoryService
    from .tablestore import TablestoreMemoryService, create_tablestore_client
    from .task import TaskMemoryService
    from .tool import ToolCallResult, ToolMemoryService
    from .values.receipt import Receipt
    from .values.results import Deleted, Erasure, MemoryHit, Page, Status
    from .values.review import Decided, Proposal, Proposals

    ReMePersonalMemoryService = PersonalMemoryService
    ReMeTaskMemoryService = TaskMemoryService

__all__ = [
    "Decided",
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
    "Proposal",
    "Proposals",
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
        "Decided": Lazy("values.review"),
        "Deleted": Lazy("values.results"),
        "Erasure": Lazy("values.results"),
        "InMemoryMemoryService": Lazy("in_memory"),
        "LongTermMemoryBase": Lazy("long_term"),
        "ReMePersonalLongTermMemory": Lazy("long_term"),
        "ReMeTaskLongTermMemory": Lazy("long_term"),
        "ReMeToolLongTermMemory": Lazy("long_term"),
        "ToolCallResult": Lazy("tool"),
        "Mem0LongTermMemory": Lazy("mem0"),
        "Mem0MemoryService": Lazy("mem0"),
        "MemoryHit": Lazy("values.results"),
        "MemoryServiceFactory": Lazy("factory"),
        "Page": Lazy("values.results"),
        "PersonalMemoryService": Lazy("personal"),
        "Proposal": Lazy("values.review"),
        "Proposals": Lazy("values.review"),
        "ReMePersonalMemoryService": Lazy("personal"),
        "ReMeTaskMemoryService": Lazy("task"),
        "Receipt": Lazy("values.receipt"),
        "RedisMemoryService": Lazy("redis", "redis", "redis"),
        "SQLMemoryService": Lazy("sql", "sqlalchemy", "sql postgres mysql"),
        "ServiceLongTermMemory": Lazy("long_term"),
        "ServiceSettings": Lazy("settings"),
        "SpaceMemoryService": Lazy("space"),
        "Status": Lazy("values.results"),
        "StoredMemoryService": Lazy("stored"),
        "TablestoreMemoryService": Lazy("tablestore", "tablestore_for_agent_memory", "tablestore"),
        "TaskMemoryService": Lazy("task"),
        "ToolMemoryService": Lazy("tool"),
        "create_tablestore_client": Lazy("tablestore", "tablestore", "tablestore"),
    },
)

__dir__ = listing(__name__)
