"""Compatibility: the runtime's path of the memory services. Each is imported on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .... import service as _service

if TYPE_CHECKING:
    from ....service import (
        InMemoryMemoryService,
        Mem0MemoryService,
        MemoryService,
        MemoryServiceFactory,
        RedisMemoryService,
        ReMePersonalMemoryService,
        ReMeTaskMemoryService,
        TablestoreMemoryService,
    )

__all__ = [
    "InMemoryMemoryService",
    "Mem0MemoryService",
    "MemoryService",
    "MemoryServiceFactory",
    "ReMePersonalMemoryService",
    "ReMeTaskMemoryService",
    "RedisMemoryService",
    "TablestoreMemoryService",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(_service, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
