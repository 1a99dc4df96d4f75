"""Compatibility: the runtime's path of the personal memory service."""

from __future__ import annotations

from ....service import ReMePersonalMemoryService

__all__ = ["ReMePersonalMemoryService"]
