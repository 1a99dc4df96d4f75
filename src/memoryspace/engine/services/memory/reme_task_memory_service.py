"""The service for tasks, where the runtime has it."""

from __future__ import annotations

from ....service import ReMeTaskMemoryService

__all__ = ["ReMeTaskMemoryService"]
