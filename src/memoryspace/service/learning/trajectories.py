"""``Trajectories``: the verbs of a service that learns from attempts at tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace as change

from ...errors import InvalidInput
from ...record import is_number
from ..reading.arguments import as_ids
from ..reading.filters import count_in
from ..values.kinds import EXPERIENCE
from ..values.memory import MemoryItem, Said
from ..values.receipt import Receipt
from ..values.results import Deleted
from ..verbs import Verbs
from .lessons import SUCCESSES, USES, uses_of


class Trajectories(Verbs):
    """Adding scored attempts, and telling how what was learnt from them did.

    They need a deriver of experiences among those of the service.
    """

    async def add_trajectory(
        self,
        user_id: str,
        messages: Sequence[Said],
        *,
        score: float,
        task: str | None = None,
        success_threshold: float = 1.0,
        session_id: str | None = None,
    ) -> Receipt:
        """Remember one attempt and learn from it; ``score`` says how well it went.

        Attempts with the same ``task`` (by default, what the first message asks) are compared.
        """
        self._needs(EXPERIENCE, "TaskDeriver")
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
        self,
        user_id: str,
        memory_ids: str | Sequence[str],
        *,
        helped: bool | None = None,
        succeeded: bool | None = None,
    ) -> list[MemoryItem]:
        """Count that experiences were used, and whether that helped; return them.

        Who cannot tell says whether the task ``succeeded``. What helped moves up in searches, what
        did not moves down. Whoever counts at the same time is counted as well.
        """
        if helped is None and succeeded is None:
            raise InvalidInput("tell record_use() whether it helped=, or the task succeeded=")
        good = bool(succeeded if helped is None else helped)
        scope = self._scope(user_id, None)

        def count(memory: MemoryItem) -> MemoryItem:
            if memory.kind != EXPERIENCE:
                raise InvalidInput(f"memory {memory.id!r} is no experience but a {memory.kind}")
            uses, successes = uses_of(memory)
            counted = {**memory.details, USES: uses + 1, SUCCESSES: successes + good}
            return change(memory, details=counted)

        ids = dict.fromkeys(as_ids(memory_ids))
        return [await self._repository.edit(scope, each, count, keep=False) for each in ids]

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
                uses, successes = uses_of(memory)
                if uses >= min_uses and successes < min_success_rate * uses:
                    useless.append(memory.id)
            cursor = page.cursor
            if cursor is None:
                break
        return await self.delete(user_id, useless) if useless else Deleted()
