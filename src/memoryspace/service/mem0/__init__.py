"""mem0 as a memory service and as a long-term memory for agents.

The package ``mem0ai`` is imported when a memory is opened, not when this package is imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...extras import Lazy, lazily, listing

if TYPE_CHECKING:
    from .long_term import Mem0LongTermMemory
    from .service import Mem0MemoryService

__all__ = ["Mem0LongTermMemory", "Mem0MemoryService"]

__dir__ = listing(__name__)
__getattr__ = lazily(
    __name__,
    {
        "Mem0LongTermMemory": Lazy("long_term"),
        "Mem0MemoryService": Lazy("service"),
    },
)
