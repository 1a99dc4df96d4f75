"""``Trajectories``: the service methods for scored attempts and the lessons from them."""

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
    """Adds scored attempts at tasks, and records how the lessons from them worked out.

    Adding requires a ``TaskDeriver`` among the service's derivers.
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
        """Store one attempt at a task and derive lessons from it.

        Args:
            user_id: The user whose memory this is.
            messages: The attempt, message by message.
            score: How well it went.
            task: The task; by default, what the first message asks. Attempts at the same task are
                compared.
            success_threshold: The score from which an attempt counts as a success.
            session_id: The session to add to; ``"default"`` if ``None``.

        Returns:
            The ids of the new messages, as a receipt.

        Raises:
            InvalidInput: A number is not valid, or the service has no ``TaskDeriver``.
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
        """Record that lessons were used, and whether they helped.

        A lesson that helped moves up in searches, one that did not moves down. Concurrent calls
        are all counted.

        Args:
            user_id: The user whose lessons they are.
            memory_ids: The lessons that were used.
            helped: Whether they helped.
            succeeded: Whether the task succeeded; used if ``helped`` is not known.

        Returns:
            The lessons with their new counts.

        Raises:
            InvalidInput: Neither ``helped`` nor ``succeeded`` is given, or a memory is no lesson.
            UnknownMemory: There is no such memory.
        """
        if helped is None and succeeded is None:
            raise InvalidInput("record_use() needs helped= or succeeded=")
        good = bool(succeeded if helped is None else helped)
        scope = self._scope(user_id, None)

        def count(memory: MemoryItem) -> MemoryItem:
            if memory.kind != EXPERIENCE:
                raise InvalidInput(f"memory {memory.id!r} is not an experience but a {memory.kind}")
            uses, successes = uses_of(memory)
            counted = {**memory.details, USES: uses + 1, SUCCESSES: successes + good}
            return change(memory, details=counted)

        ids = dict.fromkeys(as_ids(memory_ids))
        return [await self._repository.edit(scope, each, count, keep=False) for each in ids]

    async def prune(
        self, user_id: str, *, min_uses: int = 5, min_success_rate: float = 0.5
    ) -> Deleted:
        """Delete lessons that did not help.

        Args:
            user_id: The user whose lessons to check.
            min_uses: Keep lessons that were used less often.
            min_success_rate: Delete lessons that helped in a smaller share of their uses.

        Returns:
            What was deleted.
        """
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
