"""``TaskMemoryService`` under the module name that ReMe uses."""

from __future__ import annotations

from . import TaskMemoryService

__all__ = ["TaskMemoryService"]
