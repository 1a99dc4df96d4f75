"""``ToolMemoryService``: how tools were called, how that went, and what to learn from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..model import ChatModel, Spending
from ..store import MemoryStore, Store
from .deriving.tool import ToolDeriver
from .deriving.tool_call import ToolCallResult, call_from
from .kinds import TOOL
from .memory import MemoryItem
from .settings import ServiceSettings
from .stored import StoredMemoryService

__all__ = ["ToolCallResult", "ToolMemoryService"]


class ToolMemoryService(StoredMemoryService):
    """One memory for each tool: statistics of its calls, and guidelines drawn from them.

    The calls themselves stand in ``store`` (in RAM if none is given). A call that is recorded
    twice counts once. Without a ``model`` the guidelines are read off the calls by rules;
    ``spending`` counts what a model costs.
    """

    def __init__(
        self,
        store: Store | None = None,
        *,
        model: ChatModel | None = None,
        spending: Spending | None = None,
        settings: ServiceSettings | None = None,
    ) -> None:
        store = MemoryStore() if store is None else store
        super().__init__(store, settings=settings, deriver=ToolDeriver(model, spending=spending))

    async def add_tool_call_results(
        self,
        user_id: str,
        results: Sequence[ToolCallResult | Mapping[str, Any]],
        session_id: str | None = None,
    ) -> list[str]:
        """Remember calls, all or none; return the ids of those that are new."""
        messages = [call_from(each).message() for each in results]
        return await self.add_memory(user_id, messages, session_id)

    async def guidelines(self, user_id: str, tool_names: str | Sequence[str]) -> list[MemoryItem]:
        """Return what is known of these tools, by their exact names and in their order."""
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
