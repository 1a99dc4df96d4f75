"""``AsyncReview``: what waits for a decision, and the decisions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from ..service.stored import StoredMemoryService
from .results import Memories

Opened = Callable[[], Awaitable[StoredMemoryService]]
Whose = Callable[[str | None], str]


class AsyncReview:
    """Messages that are held back because they look like instructions to a model.

    Made by ``AsyncMemory.review``.
    """

    def __init__(self, opened: Opened, whose: Whose) -> None:
        self._opened = opened
        self._whose = whose

    async def quarantined(self, *, user: str | None = None) -> Memories:
        """Return the messages that are held back, oldest first; ``details`` say why."""
        service = await self._opened()
        return Memories(await service.quarantined(self._whose(user)))

    async def release(
        self,
        memory_ids: str | Sequence[str],
        *,
        user: str | None = None,
        session: str | None = None,
    ) -> list[str]:
        """Let messages be found that were held back; return their ids."""
        service = await self._opened()
        return await service.release(self._whose(user), memory_ids, session_id=session)
