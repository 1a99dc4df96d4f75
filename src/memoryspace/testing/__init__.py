"""For those who build on memoryspace: the contracts as checks, and small tools for tests."""

from .cold_contract import COLD_CONTRACT, ColdCheck
from .memory_contract import MEMORY_CONTRACT, MemoryCheck, MemoryMaker
from .store_contract import STORE_CONTRACT, StoreCheck, StoreMaker
from .tools import ManualClock, capture, fresh_scope

__all__ = [
    "COLD_CONTRACT",
    "MEMORY_CONTRACT",
    "STORE_CONTRACT",
    "ColdCheck",
    "ManualClock",
    "MemoryCheck",
    "MemoryMaker",
    "StoreCheck",
    "StoreMaker",
    "capture",
    "fresh_scope",
]
