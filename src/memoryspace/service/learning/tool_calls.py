"""``ToolCalls``: the service methods for tool calls and guidelines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..deriving.tool.call import ToolCallResult, call_from
from ..values.kinds import TOOL
from ..values.memory import MemoryItem
from ..values.receipt import Receipt
from ..verbs import Verbs


class ToolCalls(Verbs):
    """Adds tool calls and returns what was learned about a tool.

    Adding requires a ``ToolDeriver`` among the service's derivers.
    """

    async def add_tool_call_results(
        self,
        user_id: str,
        results: Sequence[ToolCallResult | Mapping[str, Any]],
        session_id: str | None = None,
    ) -> Receipt:
        """Store tool calls, all or none.

        Args:
            user_id: The user whose memory this is.
            results: The calls, as ``ToolCallResult`` or as dicts of its fields.
            session_id: The session to add to; ``"default"`` if ``None``.

        Returns:
            The ids of new calls, as a receipt.

        Raises:
            InvalidInput: A call is not valid, or the service has no ``ToolDeriver``.
        """
        self._needs(TOOL, "ToolDeriver")
        messages = [call_from(each).message() for each in results]
        return await self.add_memory(user_id, messages, session_id)

    async def guidelines(self, user_id: str, tool_names: str | Sequence[str]) -> list[MemoryItem]:
        """Return the guidelines for these tools, by exact name and in the order given."""
        names = [tool_names] if isinstance(tool_names, str) else list(tool_names)
        known = await self._of_tools(user_id)
        return [known[name] for name in names if name in known]

    async def _of_tools(self, user_id: str) -> dict[str, MemoryItem]:
        found: dict[str, MemoryItem] = {}
        cursor = None
        while True:
            page = await self.page(user_id, cursor=cursor, limit=500, filters={"kind": TOOL})
            found.update((str(each.details.get("tool_name")), each) for each in page.memories)
            cursor = page.cursor
            if cursor is None:
                return found
