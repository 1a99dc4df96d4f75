"""``TaskMemoryService``: long-term memory that learns lessons from attempts at tasks."""

from __future__ import annotations

from ..model import ChatModel, Spending
from ..store import Address, MemoryStore, Store
from .deriving.task.deriver import TaskDeriver
from .learning.lessons import SUCCESSES, USES
from .search.opening import SearchPlace
from .settings import ServiceSettings
from .stored import StoredMemoryService

__all__ = ["SUCCESSES", "USES", "ReMeTaskMemoryService", "TaskMemoryService"]


class TaskMemoryService(StoredMemoryService):
    """Stores scored trajectories and derives lessons from success, failure and comparison.

    Trajectories are stored before anything is derived from them. Report with ``record_use`` how a
    lesson worked out; ``prune`` deletes those that did not help.

    Args:
        store: A store, which the caller closes; or an address or a folder, which this service
            opens and closes; in RAM if ``None``.
        model: Phrases the lessons; without it they quote what happened.
        spending: Counts what the model costs.
        search: Where the index is, as in ``StoredMemoryService``.
        settings: How to search, what to accept and how long to keep it.

    Example::

        async with TaskMemoryService() as service:
            await service.add_trajectory("ann", ["Book a train", "Booked."], score=1.0)
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
            derivers=[TaskDeriver(model, spending=spending)],
            search=search,
        )


ReMeTaskMemoryService = TaskMemoryService
