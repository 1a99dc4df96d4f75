"""memoryspace: a memory manager for LLM agents.

The main classes can be imported from here; each is also in its own subpackage. Classes that need
an optional dependency are imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import memory as _memory
from . import store as _store
from .errors import MemorySpaceError
from .events import Event, EventStream
from .extras import listing
from .memory import InMemoryMemory, MemoryBase
from .message import Msg
from .module import StateModule
from .operations import observed, operation
from .record import Origin, Record, Scope, Where
from .store import MemoryStore, Store, open_store
from .version import VERSION

if TYPE_CHECKING:
    from .agent import AgentBase, ReActAgent, UserAgent
    from .door import AsyncMemory, Config, Memory
    from .kernel import MemoryManager, TieredMemoryManager
    from .memory import (
        AsyncSQLAlchemyMemory,
        ContextWindow,
        MemoryWithCompress,
        RedisMemory,
        ReMeShortTermMemory,
        SpaceMemory,
    )
    from .pipeline import MsgHub
    from .service import (
        InMemoryMemoryService,
        MemoryService,
        PersonalMemoryService,
        RedisMemoryService,
        SpaceMemoryService,
        SQLMemoryService,
        TaskMemoryService,
        ToolMemoryService,
    )
    from .session import JSONSession, RedisSession, SQLSession
    from .store import RedisStore, SpaceStore, SQLStore

__version__ = VERSION

__all__ = [
    "AgentBase",
    "AsyncMemory",
    "AsyncSQLAlchemyMemory",
    "Config",
    "ContextWindow",
    "Event",
    "EventStream",
    "InMemoryMemory",
    "InMemoryMemoryService",
    "JSONSession",
    "Memory",
    "MemoryBase",
    "MemoryManager",
    "MemoryService",
    "MemorySpaceError",
    "MemoryStore",
    "MemoryWithCompress",
    "Msg",
    "MsgHub",
    "Origin",
    "PersonalMemoryService",
    "ReActAgent",
    "ReMeShortTermMemory",
    "Record",
    "RedisMemory",
    "RedisMemoryService",
    "RedisSession",
    "RedisStore",
    "SQLMemoryService",
    "SQLSession",
    "SQLStore",
    "Scope",
    "SpaceMemory",
    "SpaceMemoryService",
    "SpaceStore",
    "StateModule",
    "Store",
    "TaskMemoryService",
    "TieredMemoryManager",
    "ToolMemoryService",
    "UserAgent",
    "Where",
    "observed",
    "open_store",
    "operation",
]

# Each of these loads its package on first use.
_ELSEWHERE = {
    **dict.fromkeys(("AgentBase", "ReActAgent", "UserAgent"), ".agent"),
    "MsgHub": ".pipeline",
    **dict.fromkeys(("AsyncMemory", "Config", "Memory"), ".door"),
    **dict.fromkeys(("JSONSession", "RedisSession", "SQLSession"), ".session"),
    **dict.fromkeys(("MemoryManager", "TieredMemoryManager"), ".kernel"),
    **dict.fromkeys(
        (
            "InMemoryMemoryService",
            "MemoryService",
            "PersonalMemoryService",
            "RedisMemoryService",
            "SQLMemoryService",
            "SpaceMemoryService",
            "TaskMemoryService",
            "ToolMemoryService",
        ),
        ".service",
    ),
}


__dir__ = listing(__name__)


def __getattr__(name: str) -> Any:
    if name in _ELSEWHERE:
        return getattr(import_module(_ELSEWHERE[name], __name__), name)
    if name == "session":
        return import_module(".session", __name__)
    for module in (_memory, _store):
        if name in module.__all__:
            return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
