"""The personal service, where the runtime has it."""

from __future__ import annotations

from ....service import ReMePersonalMemoryService

__all__ = ["ReMePersonalMemoryService"]
