"""Contract suites for custom backends, and tools for tests.

Each contract is a tuple of checks: functions that raise ``AssertionError`` if a backend breaks the
contract. They need no test framework.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..extras import Lazy, lazily, listing
from .cold_contract import COLD_CONTRACT, ColdCheck
from .memory_contract import MEMORY_CONTRACT, MemoryCheck, MemoryMaker
from .scripted import ScriptedCall, ScriptedModel
from .store_contract import STORE_CONTRACT, StoreCheck, StoreMaker
from .store_vectors_contract import VECTORS_CONTRACT
from .tools import ManualClock, capture, fresh_scope

if TYPE_CHECKING:
    from .service_contract import SERVICE_CONTRACT, ServiceCheck, ServiceMaker

__all__ = [
    "COLD_CONTRACT",
    "MEMORY_CONTRACT",
    "SERVICE_CONTRACT",
    "STORE_CONTRACT",
    "VECTORS_CONTRACT",
    "ColdCheck",
    "ManualClock",
    "MemoryCheck",
    "MemoryMaker",
    "ScriptedCall",
    "ScriptedModel",
    "ServiceCheck",
    "ServiceMaker",
    "StoreCheck",
    "StoreMaker",
    "capture",
    "fresh_scope",
]

__dir__ = listing(__name__)
__getattr__ = lazily(
    __name__,
    dict.fromkeys(("SERVICE_CONTRACT", "ServiceCheck", "ServiceMaker"), Lazy("service_contract")),
)
