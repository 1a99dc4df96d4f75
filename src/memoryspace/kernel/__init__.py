"""The kernel: memory managed the way systems manage memory.

A heap with real bytes, collectors with bounded pauses, a journal and checkpoints, hot and cold
tiers, points in time to go back to. Synchronous and safe from threads; ``AsyncMemoryManager`` is
its face for asyncio.
"""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

from ..errors import OutOfSpace, UnknownObject
from .aio import AsyncMemoryManager
from .allocators import (
    Allocator,
    BestFitAllocator,
    FirstFitAllocator,
    SegregatedFitAllocator,
)
from .checkpoints import CheckpointManager
from .cold import ColdStorage, RamColdStorage, SQLiteColdStorage, open_cold
from .collectors import (
    GarbageCollector,
    GenerationalCollector,
    MarkAndSweepCollector,
    TimeToLiveCollector,
)
from .curves import HitRate, MissRatioCurve
from .cycles import GCEvent
from .drafts import NewObject
from .history import Difference, PastSpace, at, diff, fork, restore
from .journal import ALWAYS, OS, WriteAheadLog, group
from .locks import ReadWriteLock
from .manager import Condemned, Hit, MemoryManager
from .object import MemoryObject
from .opening import Durability
from .ownership import FolderInUse, FolderLock
from .pager import PagerStats, PageTable
from .policies import (
    AdaptiveFragmentationPolicy,
    BanditGCPolicy,
    GCPolicy,
    ObjectGrowthPolicy,
    PeriodicGCPolicy,
)
from .profiler import MemoryProfiler
from .replacement import ReplacementPolicy
from .searching import Retriever
from .space import HeapSnapshot, MemorySpace, Segment
from .tiers import TieredMemoryManager

if TYPE_CHECKING:
    from .cold import LMDBColdStorage

__all__ = [
    "ALWAYS",
    "OS",
    "AdaptiveFragmentationPolicy",
    "Allocator",
    "AsyncMemoryManager",
    "BanditGCPolicy",
    "BestFitAllocator",
    "CheckpointManager",
    "ColdStorage",
    "Condemned",
    "Difference",
    "Durability",
    "FirstFitAllocator",
    "FolderInUse",
    "FolderLock",
    "GCEvent",
    "GCPolicy",
    "GarbageCollector",
    "GenerationalCollector",
    "HeapSnapshot",
    "Hit",
    "HitRate",
    "LMDBColdStorage",
    "MarkAndSweepCollector",
    "MemoryManager",
    "MemoryObject",
    "MemoryProfiler",
    "MemorySpace",
    "MissRatioCurve",
    "NewObject",
    "ObjectGrowthPolicy",
    "OutOfSpace",
    "PageTable",
    "PagerStats",
    "PastSpace",
    "PeriodicGCPolicy",
    "RamColdStorage",
    "ReadWriteLock",
    "ReplacementPolicy",
    "Retriever",
    "SQLiteColdStorage",
    "Segment",
    "SegregatedFitAllocator",
    "TieredMemoryManager",
    "TimeToLiveCollector",
    "UnknownObject",
    "WriteAheadLog",
    "at",
    "diff",
    "fork",
    "group",
    "open_cold",
    "recover",
    "restore",
]


def recover(
    folder: str | PathLike[str],
    capacity: int,
    *,
    durability: Durability | None = None,
) -> MemoryManager:
    """Open the space in a folder, as ``MemoryManager(capacity, folder=…)`` does."""
    return MemoryManager(capacity, folder=folder, durability=durability)


def __getattr__(name: str) -> Any:
    if name == "LMDBColdStorage":
        from . import cold

        return cold.LMDBColdStorage
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
