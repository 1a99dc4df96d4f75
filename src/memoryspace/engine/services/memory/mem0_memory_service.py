"""Compatibility: the runtime's path of the mem0 service."""

from __future__ import annotations

from ....service import Mem0MemoryService

__all__ = ["Mem0MemoryService"]
