"""``LongTermMemoryBase``: the interface of a memory that outlives an agent's conversations.

Developers, and agents that manage memory on their own, call ``record`` and ``retrieve``. The other
two methods are tools for the model, which reads their docstrings.
"""

from __future__ import annotations

from typing import Any, NoReturn

from ...message import Msg
from ...module import StateModule
from ...tool import ToolResponse


class LongTermMemoryBase(StateModule):
    """Base class of long-term memories, with the four methods of AgentScope v1.

    A subclass implements the ones it supports; the others raise ``NotImplementedError``.
    """

    async def record(self, msgs: list[Msg | None]) -> Any:
        """Store messages.

        Args:
            msgs: The messages. ``None`` items are skipped, and a message is stored once.
        """
        self._missing("record")

    async def retrieve(self, msg: Msg | list[Msg] | None, limit: int = 5) -> str:
        """Return the memories that are relevant to messages, as text for a model.

        Args:
            msg: One message or several.
            limit: The most memories to return.
        """
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
