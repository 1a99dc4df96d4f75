"""Compatibility: the runtime's path of the service contract and the in-memory service."""

from __future__ import annotations

from ....service import InMemoryMemoryService, MemoryService

__all__ = ["InMemoryMemoryService", "MemoryService"]
