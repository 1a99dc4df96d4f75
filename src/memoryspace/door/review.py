"""``AsyncReview``: what waits for a decision, and the decisions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from ..service.stored import StoredMemoryService
from ..service.values.review import Decided, Proposals
from .results import Memories

Opened = Callable[[], Awaitable[StoredMemoryService]]
Whose = Callable[[str | None], str]


class AsyncReview:
    """What waits for a decision: facts to approve, and messages that are held back.

    With ``Config(review="facts")``, what is derived is believed only when it is approved. Messages
    are held back if they look like instructions to a model. Made by ``AsyncMemory.review``.
    """

    def __init__(self, opened: Opened, whose: Whose) -> None:
        self._opened = opened
        self._whose = whose

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    async def waiting(
        self, *, user: str | None = None, cursor: str | None = None, limit: int = 50
    ) -> Proposals:
        """Return facts that wait for approval, oldest first: their sources, what they retire."""
        service = await self._opened()
        return await service.waiting(self._whose(user), cursor=cursor, limit=limit)

    async def approve(self, memory_ids: str | Sequence[str], *, user: str | None = None) -> Decided:
        """Believe facts from now on; what they contradict ends."""
        service = await self._opened()
        return await service.approve(self._whose(user), memory_ids)

    async def reject(self, memory_ids: str | Sequence[str], *, user: str | None = None) -> Decided:
        """Drop facts; they do not come back from the same messages."""
        service = await self._opened()
        return await service.reject(self._whose(user), memory_ids)

    async def undo(self, memory_ids: str | Sequence[str], *, user: str | None = None) -> Decided:
        """Take the last decision about facts back; they wait again."""
        service = await self._opened()
        return await service.undo(self._whose(user), memory_ids)

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
