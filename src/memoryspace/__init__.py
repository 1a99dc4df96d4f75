"""memoryspace: a memory manager for LLM agents.

The main names are here; each also stands in its own module. What needs an optional dependency is
imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import memory as _memory
from . import session as _session
from . import store as _store
from .errors import MemorySpaceError
from .events import Event, EventStream
from .memory import InMemoryMemory, MemoryBase
from .message import Msg
from .module import StateModule
from .record import Origin, Record, Scope, Where
from .session import JSONSession
from .store import MemoryStore, Store

if TYPE_CHECKING:
    from .kernel import MemoryManager, TieredMemoryManager
    from .memory import AsyncSQLAlchemyMemory, RedisMemory, SpaceMemory
    from .session import RedisSession, SQLSession
    from .store import RedisStore, SpaceStore, SQLStore

__version__ = "0.1.0"

__all__ = [
    "AsyncSQLAlchemyMemory",
    "Event",
    "EventStream",
    "InMemoryMemory",
    "JSONSession",
    "MemoryBase",
    "MemoryManager",
    "MemorySpaceError",
    "MemoryStore",
    "Msg",
    "Origin",
    "Record",
    "RedisMemory",
    "RedisSession",
    "RedisStore",
    "SQLSession",
    "SQLStore",
    "Scope",
    "SpaceMemory",
    "SpaceStore",
    "StateModule",
    "Store",
    "TieredMemoryManager",
    "Where",
]


def __getattr__(name: str) -> Any:
    if name in ("MemoryManager", "TieredMemoryManager"):
        return getattr(import_module(".kernel", __name__), name)
    for module in (_memory, _session, _store):
        if name in module.__all__:
            return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
