"""The contract of a service and the one in memory, where the runtime has them."""

from __future__ import annotations

from ....service import InMemoryMemoryService, MemoryService

__all__ = ["InMemoryMemoryService", "MemoryService"]
