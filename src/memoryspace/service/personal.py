"""``PersonalMemoryService``: long-term memory that extracts facts about the user."""

from __future__ import annotations

from ..model import ChatModel, Spending
from ..store import Address, MemoryStore, Store
from .deriving.personal.deriver import PersonalDeriver
from .search.opening import SearchPlace
from .settings import ServiceSettings
from .stored import StoredMemoryService


class PersonalMemoryService(StoredMemoryService):
    """Stores messages and extracts facts, preferences, events and insights about the user.

    Messages are stored before anything is derived from them. A fact that no longer holds is
    superseded, not deleted. Searches return messages with the facts derived from them
    (``MemoryHit.facts``); lists return facts and insights. Filter by ``{"kind": "fact"}`` or
    ``{"kind": "memory"}`` for one of them.

    Args:
        store: A store, which the caller closes; or an address or a folder, which this service
            opens and closes; in RAM if ``None``.
        model: Finds more than the built-in rules do; without it only rules are used.
        spending: Counts what the model costs.
        search: Where the index is, as in ``StoredMemoryService``.
        settings: How to search, what to accept and how long to keep it.

    Example::

        async with PersonalMemoryService() as service:
            await service.add_memory("ann", ["I moved to Oslo"])
            print(await service.facts("ann"))
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
            derivers=[PersonalDeriver(model, spending=spending)],
            search=search,
        )


ReMePersonalMemoryService = PersonalMemoryService
