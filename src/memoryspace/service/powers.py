"""Protocols for what only some services can do, one member each; check with ``isinstance``.

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
    """Learns lessons from scored attempts at tasks."""

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
        """Store one attempt and derive lessons from it; ``score`` says how well it went."""


@runtime_checkable
class PrunesLessons(Protocol):
    """Deletes lessons that did not help."""

    async def prune(
        self, user_id: str, *, min_uses: int = 5, min_success_rate: float = 0.5
    ) -> Deleted:
        """Delete experiences with at least ``min_uses`` and a lower success rate."""


@runtime_checkable
class LearnsFromCalls(Protocol):
    """Keeps statistics of tool calls."""

    async def add_tool_call_results(
        self,
        user_id: str,
        results: Sequence[ToolCallResult | Mapping[str, Any]],
        session_id: str | None = None,
    ) -> Receipt:
        """Store tool calls, all or none."""


@runtime_checkable
class KnowsTools(Protocol):
    """Knows how to call tools."""

    async def guidelines(self, user_id: str, tool_names: str | Sequence[str]) -> list[MemoryItem]:
        """Return the guidelines for these tools, by exact name and in the order given."""


@runtime_checkable
class KnowsInstructions(Protocol):
    """Knows how a user wants every question answered."""

    async def instructions(self, user_id: str) -> list[MemoryItem]:
        """Return the user's standing instructions, newest first."""


@runtime_checkable
class Scrubs(Protocol):
    """Can rewrite its files so that no deleted data is left in them."""

    async def scrub(self) -> None:
        """Rewrite the files."""


@runtime_checkable
class StandsOnStore(Protocol):
    """Keeps everything in a store that callers can inspect."""

    @property
    def store(self) -> Store:
        """The store that holds everything."""
