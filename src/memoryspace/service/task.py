"""``TaskMemoryService``: what attempts at tasks have taught, and whether that has been of use."""

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
    """Lessons of success, of failure, and of comparing both, from scored trajectories.

    A trajectory stands in ``store`` (in RAM if none is given; an address or a folder is opened and
    closed here) before it is thought about. Without a ``model`` the lessons are in the words of
    what happened; ``spending`` counts what it costs. Whoever uses a lesson says how it went
    (``record_use``); ``prune`` forgets those that did not help.
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
