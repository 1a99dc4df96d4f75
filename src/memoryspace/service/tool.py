"""``ToolMemoryService``: long-term memory of tool calls, with guidelines for each tool."""

from __future__ import annotations

from ..model import ChatModel, Spending
from ..store import Address, MemoryStore, Store
from .deriving.tool.call import ToolCallResult
from .deriving.tool.deriver import ToolDeriver
from .search.opening import SearchPlace
from .settings import ServiceSettings
from .stored import StoredMemoryService

__all__ = ["ToolCallResult", "ToolMemoryService"]


class ToolMemoryService(StoredMemoryService):
    """Stores tool calls and keeps one memory per tool: statistics and guidelines.

    A call that is added twice counts once.

    Args:
        store: A store, which the caller closes; or an address or a folder, which this service
            opens and closes; in RAM if ``None``.
        model: Writes the guidelines; without it rules read them from the calls.
        spending: Counts what the model costs.
        search: Where the index is, as in ``StoredMemoryService``.
        settings: How to search, what to accept and how long to keep it.

    Example::

        async with ToolMemoryService() as service:
            print(await service.guidelines("ann", "web_search"))
    """

    def __init__(
        self,
        store: Store | Address | None = None,
        *,
        model: ChatModel | None = None,
        spending: Spending | None = None,
        search: SearchPlace = "process",
        settings: ServiceSettings | None = None,
    ) -> None:
        super().__init__(
            MemoryStore() if store is None else store,
            settings=settings,
            derivers=[ToolDeriver(model, spending=spending)],
            search=search,
        )
