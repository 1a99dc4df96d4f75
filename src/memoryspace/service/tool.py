"""``ToolMemoryService``: how tools were called, how that went, and what to learn from it."""

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
    """One memory for each tool: statistics of its calls, and guidelines drawn from them.

    The calls themselves stand in ``store`` (in RAM if none is given; an address or a folder is
    opened and closed here). A call that is recorded twice counts once. Without a ``model`` the
    guidelines are read off the calls by rules; ``spending`` counts what a model costs.
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
