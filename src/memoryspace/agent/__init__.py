"""Agents: ReAct agents, users, and the base class of both.

The classes keep the names and signatures of AgentScope v1, so that a program written for it runs
once the root of its imports is changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..extras import Lazy, lazily, listing
from .base import AgentBase
from .hooks import InvalidHook
from .user import UserAgent
from .user_input import TerminalUserInput, UserInputBase, UserInputData

if TYPE_CHECKING:
    from .compression import CompressionConfig
    from .react import ReActAgent
    from .react_base import ReActAgentBase

__all__ = [
    "AgentBase",
    "CompressionConfig",
    "InvalidHook",
    "ReActAgent",
    "ReActAgentBase",
    "TerminalUserInput",
    "UserAgent",
    "UserInputBase",
    "UserInputData",
]

__dir__ = listing(__name__)
__getattr__ = lazily(
    __name__,
    {
        "CompressionConfig": Lazy("compression"),
        "ReActAgent": Lazy("react"),
        "ReActAgentBase": Lazy("react_base"),
    },
)
