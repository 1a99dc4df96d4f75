"""Compatibility: the runtime's path of the service factory."""

from __future__ import annotations

from ....service import MemoryServiceFactory

__all__ = ["MemoryServiceFactory"]
