"""``TaskMemoryService``, where ReMe has it."""

from __future__ import annotations

from . import TaskMemoryService

__all__ = ["TaskMemoryService"]
