"""``PersonalMemoryService``, where ReMe has it."""

from __future__ import annotations

from . import PersonalMemoryService

__all__ = ["PersonalMemoryService"]
