"""The factory, where the runtime has it."""

from __future__ import annotations

from ....service import MemoryServiceFactory

__all__ = ["MemoryServiceFactory"]
