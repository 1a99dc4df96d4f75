"""Compatibility: the runtime's path of the task memory service."""

from __future__ import annotations

from ....service import ReMeTaskMemoryService

__all__ = ["ReMeTaskMemoryService"]
