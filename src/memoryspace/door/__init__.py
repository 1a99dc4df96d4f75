"""The door: ``Memory`` and ``AsyncMemory``, opened by an address, with one set of verbs."""

from __future__ import annotations

from .blocking import Memory, Review, Session
from .config import Config, load_config
from .memory import AsyncMemory
from .recalls import Recall, Recalls
from .results import (
    Collected,
    Context,
    Diff,
    Erased,
    Garbage,
    Memories,
    MemoryChange,
    Moment,
    SearchResult,
    Stats,
)
from .review import AsyncReview
from .session import AsyncSession

__all__ = [
    "AsyncMemory",
    "AsyncReview",
    "AsyncSession",
    "Collected",
    "Config",
    "Context",
    "Diff",
    "Erased",
    "Garbage",
    "Memories",
    "Memory",
    "MemoryChange",
    "Moment",
    "Recall",
    "Recalls",
    "Review",
    "SearchResult",
    "Session",
    "Stats",
    "load_config",
]
