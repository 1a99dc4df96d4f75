"""``LongTermMemoryBase``: what an agent asks of a memory that outlives its conversations.

``record`` and ``retrieve`` are for the developer and for an agent that remembers by itself. The
two others are tools for the model: their docstrings are what it reads.
"""

from __future__ import annotations

from typing import Any, NoReturn

from ...message import Msg
from ...module import StateModule
from ...tool import ToolResponse


class LongTermMemoryBase(StateModule):
    """The base of long-term memories. AgentScope v1's four methods, none of them made yet."""

    async def record(self, msgs: list[Msg | None]) -> Any:
        """Remember messages. ``None`` among them is skipped; a message is remembered once."""
        self._missing("record")

    async def retrieve(self, msg: Msg | list[Msg] | None, limit: int = 5) -> str:
        """Return what is remembered about a message or several, as text for a model."""
        self._missing("retrieve")

    async def record_to_memory(self, thinking: str, content: list[str]) -> ToolResponse:
        """Remember something important for later conversations, such as a fact about the user.

        Args:
            thinking (`str`):
                Why this is worth remembering, in your own words.
            content (`list[str]`):
                What to remember. Each item is one fact that can be understood on its own, with
                names, places and dates written out.
        """
        self._missing("record_to_memory")

    async def retrieve_from_memory(self, keywords: list[str], limit: int = 5) -> ToolResponse:
        """Look up what is remembered. Use it before answering what may have been told earlier.

        Args:
            keywords (`list[str]`):
                What to look for: names, topics, or short questions, each looked up by itself.
            limit (`int`, defaults to 5):
                How many memories to return at most.
        """
        self._missing("retrieve_from_memory")

    def _missing(self, method: str) -> NoReturn:
        raise NotImplementedError(f"{type(self).__name__} does not offer {method}()")
