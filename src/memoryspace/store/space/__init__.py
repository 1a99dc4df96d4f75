"""Records in a memory space: the embedded, durable backend."""

from __future__ import annotations

from .store import HOT_CAPACITY, SpaceStore

__all__ = ["HOT_CAPACITY", "SpaceStore"]
