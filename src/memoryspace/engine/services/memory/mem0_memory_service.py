"""The service on mem0, where the runtime has it."""

from __future__ import annotations

from ....service import Mem0MemoryService

__all__ = ["Mem0MemoryService"]
