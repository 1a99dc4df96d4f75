"""Compatibility with AgentScope v1: long-term memories at its import path.

They live in ``memoryspace.service``.
"""

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
