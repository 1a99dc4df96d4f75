"""What some services can do beside the contract: one member each, asked for by ``isinstance``.

``if isinstance(service, LearnsFromAttempts): await service.add_trajectory(…)``
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from ..store import Store
from .deriving.tool.call import ToolCallResult
from .values.memory import MemoryItem, Said
from .values.receipt import Receipt
from .values.results import Deleted


@runtime_checkable
class LearnsFromAttempts(Protocol):
    """Draws lessons from scored attempts at tasks."""

    async def add_trajectory(
        self,
        user_id: str,
        messages: Sequence[Said],
        *,
        score: float,
        task: str | None = None,
        success_threshold: float = 1.0,
        session_id: str | None = None,
    ) -> Receipt:
        """Remember one attempt and learn from it; ``score`` says how well it went."""


@runtime_checkable
class PrunesLessons(Protocol):
    """Forgets lessons that did not help."""

    async def prune(
        self, user_id: str, *, min_uses: int = 5, min_success_rate: float = 0.5
    ) -> Deleted:
        """Delete experiences used at least so often that helped less often than that."""


@runtime_checkable
class LearnsFromCalls(Protocol):
    """Keeps statistics of calls of tools."""

    async def add_tool_call_results(
        self,
        user_id: str,
        results: Sequence[ToolCallResult | Mapping[str, Any]],
        session_id: str | None = None,
    ) -> Receipt:
        """Remember calls, all or none."""


@runtime_checkable
class KnowsTools(Protocol):
    """Tells how tools are best called."""

    async def guidelines(self, user_id: str, tool_names: str | Sequence[str]) -> list[MemoryItem]:
        """Return what is known of these tools, by their exact names and in their order."""


@runtime_checkable
class KnowsInstructions(Protocol):
    """Tells how a user wants to be answered, whatever is asked."""

    async def instructions(self, user_id: str) -> list[MemoryItem]:
        """Return the standing instructions that hold now, newest first."""


@runtime_checkable
class Scrubs(Protocol):
    """Can rewrite its files so that nothing deleted is left in them."""

    async def scrub(self) -> None:
        """Rewrite the files."""


@runtime_checkable
class StandsOnStore(Protocol):
    """Keeps everything in a store that can be looked at."""

    @property
    def store(self) -> Store:
        """Where everything stands."""
