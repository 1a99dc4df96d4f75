"""Long-term memories for agents, over services."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...extras import Lazy, lazily, listing
from ...tool import ToolResponse
from .base import LongTermMemoryBase
from .rendering import quoted, render
from .service_memory import ServiceLongTermMemory

if TYPE_CHECKING:
    from .reme import (
        ReMeLongTermMemoryBase,
        ReMePersonalLongTermMemory,
        ReMeTaskLongTermMemory,
    )
    from .reme_tool import ReMeToolLongTermMemory

__all__ = [
    "LongTermMemoryBase",
    "ReMeLongTermMemoryBase",
    "ReMePersonalLongTermMemory",
    "ReMeTaskLongTermMemory",
    "ReMeToolLongTermMemory",
    "ServiceLongTermMemory",
    "ToolResponse",
    "quoted",
    "render",
]

__dir__ = listing(__name__)
__getattr__ = lazily(
    __name__,
    {
        "ReMeLongTermMemoryBase": Lazy("reme"),
        "ReMePersonalLongTermMemory": Lazy("reme"),
        "ReMeTaskLongTermMemory": Lazy("reme"),
        "ReMeToolLongTermMemory": Lazy("reme_tool"),
    },
)
