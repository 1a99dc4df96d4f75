"""``ReActAgentBase``: base class of agents that reason and act in turn, with hooks for both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from .base import AgentBase


class ReActAgentBase(AgentBase):
    """Base class of ReAct agents. Implement ``_reasoning`` and ``_acting``."""

    supported_hook_types: ClassVar[Sequence[str]] = (
        *AgentBase.supported_hook_types,
        "pre_reasoning",
        "post_reasoning",
        "pre_acting",
        "post_acting",
    )

    # Any arguments: subclasses define their own signatures.
    async def _reasoning(self, *args: Any, **kwargs: Any) -> Any:
        """Decide what to do next. Subclasses implement this."""
        raise NotImplementedError(f"{type(self).__name__} must implement _reasoning()")

    async def _acting(self, *args: Any, **kwargs: Any) -> Any:
        """Take one action. Subclasses implement this."""
        raise NotImplementedError(f"{type(self).__name__} must implement _acting()")
