"""``ReActAgentBase``: an agent that reasons and acts in turn, with hooks around both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from .base import AgentBase


class ReActAgentBase(AgentBase):
    """Implement ``_reasoning``, which thinks of what to do, and ``_acting``, which does it."""

    supported_hook_types: ClassVar[Sequence[str]] = (
        *AgentBase.supported_hook_types,
        "pre_reasoning",
        "post_reasoning",
        "pre_acting",
        "post_acting",
    )

    # Any arguments: what is reasoned and acted with is the agent's own affair.
    async def _reasoning(self, *args: Any, **kwargs: Any) -> Any:
        """Think of what to do next. To be implemented."""
        raise NotImplementedError(f"{type(self).__name__} must implement _reasoning()")

    async def _acting(self, *args: Any, **kwargs: Any) -> Any:
        """Do one thing that was thought of. To be implemented."""
        raise NotImplementedError(f"{type(self).__name__} must implement _acting()")
