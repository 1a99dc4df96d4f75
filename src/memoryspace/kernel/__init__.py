"""The kernel: memory managed the way an operating system manages it.

A heap of real bytes, collectors with bounded pauses, a journal and checkpoints, hot and cold tiers,
and points in time to restore. Synchronous and thread-safe; ``AsyncMemoryManager`` wraps it for
asyncio.
"""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

from ..errors import OutOfSpace, UnknownObject
from .aio import AsyncMemoryManager
from .desk import Desk
from .durable.checkpoints import CheckpointManager
from .durable.folder import Durability
from .durable.journal import ALWAYS, OS, WriteAheadLog, group
from .durable.ownership import FolderInUse, FolderLock
from .engine import QUICK_OBJECTS
from .gc.collectors import (
    GarbageCollector,
    GenerationalCollector,
    MarkAndSweepCollector,
    TimeToLiveCollector,
)
from .gc.cycles import GCEvent
from .gc.policies import (
    AdaptiveFragmentationPolicy,
    BanditGCPolicy,
    GCPolicy,
    ObjectGrowthPolicy,
    PeriodicGCPolicy,
)
from .handles import LivingObject, ObjectHandles, Placed
from .heap.allocators import (
    Allocator,
    BestFitAllocator,
    FirstFitAllocator,
    SegregatedFitAllocator,
)
from .heap.drafts import NewObject
from .heap.object import MemoryObject
from .heap.space import HeapSnapshot, MemorySpace, Segment
from .history import Difference, PastSpace, at, diff, fork, restore
from .index.searching import Retriever
from .locks import ReadWriteLock
from .manager import Condemned, Hit, MemoryManager
from .options import Quotas, Runtime
from .profiler import MemoryProfiler
from .tiers.cold import ColdStorage, RamColdStorage, SQLiteColdStorage, open_cold
from .tiers.curves import HitRate, MissRatioCurve
from .tiers.manager import TieredMemoryManager
from .tiers.pager import PagerStats, PageTable
from .tiers.replacement import ReplacementPolicy
from .tiers.tiering import Tiering

if TYPE_CHECKING:
    from .tiers.cold import LMDBColdStorage

__all__ = [
    "ALWAYS",
    "OS",
    "QUICK_OBJECTS",
    "AdaptiveFragmentationPolicy",
    "Allocator",
    "AsyncMemoryManager",
    "BanditGCPolicy",
    "BestFitAllocator",
    "CheckpointManager",
    "ColdStorage",
    "Condemned",
    "Desk",
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
    "LivingObject",
    "MarkAndSweepCollector",
    "MemoryManager",
    "MemoryObject",
    "MemoryProfiler",
    "MemorySpace",
    "MissRatioCurve",
    "NewObject",
    "ObjectGrowthPolicy",
    "ObjectHandles",
    "OutOfSpace",
    "PageTable",
    "PagerStats",
    "PastSpace",
    "PeriodicGCPolicy",
    "Placed",
    "Quotas",
    "RamColdStorage",
    "ReadWriteLock",
    "ReplacementPolicy",
    "Retriever",
    "Runtime",
    "SQLiteColdStorage",
    "Segment",
    "SegregatedFitAllocator",
    "TieredMemoryManager",
    "Tiering",
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
    """Open the space in a folder.

    Args:
        folder: The folder of the space.
        capacity: How many bytes the heap has.
        durability: How the space is kept on disk.

    Returns:
        The same as ``MemoryManager(capacity, folder=folder, durability=durability)``.
    """
    return MemoryManager(capacity, folder=folder, durability=durability)


def __getattr__(name: str) -> Any:
    if name == "LMDBColdStorage":
        from .tiers import cold

        return cold.LMDBColdStorage
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
