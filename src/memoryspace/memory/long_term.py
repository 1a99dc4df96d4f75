"""Long-term memories stand in ``memoryspace.service``; AgentScope v1 has them beside the others."""

from __future__ import annotations

from ..service import (
    LongTermMemoryBase,
    Mem0LongTermMemory,
    ReMePersonalLongTermMemory,
    ReMeTaskLongTermMemory,
    ReMeToolLongTermMemory,
)

__all__ = [
    "LongTermMemoryBase",
    "Mem0LongTermMemory",
    "ReMePersonalLongTermMemory",
    "ReMeTaskLongTermMemory",
    "ReMeToolLongTermMemory",
]
