"""``TaskMemoryService``: what attempts at tasks have taught, and whether that has been of use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace as change

from ..errors import InvalidInput
from ..model import ChatModel, Spending
from ..record import is_number
from ..store import MemoryStore, Store
from .arguments import as_ids
from .deriving.task import TaskDeriver
from .filters import count_in
from .kinds import EXPERIENCE
from .memory import MemoryItem, Said
from .results import Deleted
from .settings import ServiceSettings
from .stored import StoredMemoryService

USES, SUCCESSES = "uses", "successes"  # counters in an experience's details


class TaskMemoryService(StoredMemoryService):
    """Lessons of success, of failure, and of comparing both, from scored trajectories.

    A trajectory stands in ``store`` (in RAM if none is given) before it is thought about. Without
    a ``model`` the lessons are in the words of what happened; ``spending`` counts what it costs.
    Whoever uses a lesson says how it went (``record_use``); ``prune`` forgets those that did not
    help.
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
        super().__init__(store, settings=settings, deriver=TaskDeriver(model, spending=spending))

    async def add_trajectory(
        self,
        user_id: str,
        messages: Sequence[Said],
        *,
        score: float,
        task: str | None = None,
        success_threshold: float = 1.0,
        session_id: str | None = None,
    ) -> list[str]:
        """Remember one attempt and learn from it; ``score`` says how well it went.

        Attempts with the same ``task`` (by default, what the first message asks) are compared.
        """
        for name, value in (("score", score), ("success_threshold", success_threshold)):
            if not is_number(value):
                raise InvalidInput(f"{name} must be a number, got {value!r}")
        if task is not None and not isinstance(task, str):
            raise TypeError(f"task must be a str, got {type(task).__name__}")
        details: dict[str, Any] = {"score": score, "success_threshold": success_threshold}
        if task is not None:
            details["task"] = task
        return await self._add(self._session(user_id, session_id), messages, details)

    async def record_use(
        self, user_id: str, memory_ids: str | Sequence[str], *, succeeded: bool
    ) -> list[MemoryItem]:
        """Count that experiences were used, and whether the task succeeded; return them.

        Whoever counts at the same time is counted as well.
        """
        scope = self._scope(user_id, None)

        def count(memory: MemoryItem) -> MemoryItem:
            if memory.kind != EXPERIENCE:
                raise InvalidInput(f"memory {memory.id!r} is no experience but a {memory.kind}")
            details = dict(memory.details)
            details[USES] = details.get(USES, 0) + 1
            details[SUCCESSES] = details.get(SUCCESSES, 0) + bool(succeeded)
            return change(memory, details=details)

        ids = dict.fromkeys(as_ids(memory_ids))
        return [await self._shelf.edit(scope, each, count, keep=False) for each in ids]

    async def prune(
        self, user_id: str, *, min_uses: int = 5, min_success_rate: float = 0.5
    ) -> Deleted:
        """Delete experiences used at least so often that helped less often than that."""
        count_in("min_uses", min_uses, 2**31)
        if not is_number(min_success_rate) or not 0 <= min_success_rate <= 1:
            raise InvalidInput(f"min_success_rate must be from 0 to 1, got {min_success_rate!r}")
        useless = []
        cursor = None
        while True:
            page = await self.page(
                user_id, cursor=cursor, limit=500, filters={"kind": EXPERIENCE, "superseded": True}
            )
            for memory in page.memories:
                uses = memory.details.get(USES, 0)
                if uses >= min_uses and memory.details.get(SUCCESSES, 0) < min_success_rate * uses:
                    useless.append(memory.id)
            cursor = page.cursor
            if cursor is None:
                break
        return await self.delete(user_id, useless) if useless else Deleted()


ReMeTaskMemoryService = TaskMemoryService
