"""``PersonalMemoryService`` under the module name that ReMe uses."""

from __future__ import annotations

from . import PersonalMemoryService

__all__ = ["PersonalMemoryService"]
