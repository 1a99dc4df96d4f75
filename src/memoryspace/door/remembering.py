"""The verbs that add, read, change and forget memories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import InvalidInput
from ..record import RESERVED_PREFIX, Scope
from ..service.reading.arguments import as_ids, check_own
from ..service.reading.filters import count_in
from ..service.values.memory import RAW, MemoryItem
from ..service.values.receipt import Receipt
from ..service.values.results import Deleted, Status
from ..store.erasures import noted
from .base import Opening
from .messages import Addable, Time, as_said
from .results import Erased, Memories
from .review import AsyncReview
from .session import AsyncSession

Filters = Mapping[str, Any]
Names = list[str]  # within the class, ``list`` is a verb

_MOST = 1000  # memories on a page


class Remembering(Opening):
    """The part of the door that holds what is remembered."""

    async def add(
        self,
        messages: Addable | Sequence[Addable],
        *,
        user: str | None = None,
        session: str | None = None,
        marks: str | Sequence[str] | None = None,
        when: Time | None = None,
    ) -> Receipt:
        """Remember one message or several. They are safe when this returns.

        Args:
            messages: Texts said by the user, dicts with ``role`` and ``content``, or messages.
            user: Whose memory it is.
            session: The conversation it was said in; ``"default"`` if ``None``.
            marks: Labels to filter by later.
            when: When it was said, if that was not now: seconds, ISO text or a ``datetime``.

        Returns:
            The ids of the new memories, with what happened to every message: new, known already,
            held back and why, durable, derived or still being derived.

        Raises:
            InvalidInput: A message or an argument is not valid. Nothing was stored.
            SecretRefused: A message holds a secret, and secrets are refused.

        Example::

            receipt = memory.add("I moved to Oslo last week.", user="alice")
        """
        service = await self._opened()
        said = as_said(messages, when)
        return await service.add_memory(self._whose(user), said, session, marks=marks)

    async def get(
        self, memory_id: str, *, user: str | None = None, session: str | None = None
    ) -> MemoryItem | None:
        """Return a memory by its id, or ``None`` if there is none."""
        service = await self._opened()
        return await service.get(self._whose(user), memory_id, session_id=session)

    async def list(
        self,
        *,
        user: str | None = None,
        session: str | None = None,
        kind: str | Sequence[str] = RAW,
        limit: int = 50,
        newest: bool = True,
        cursor: str | None = None,
        filters: Filters | None = None,
    ) -> Memories:
        """Return one page of memories.

        Args:
            user: Whose memories to list.
            session: Only those of this conversation.
            kind: ``"memory"`` for what was said; ``"fact"``, ``"insight"`` or another kind, or
                several of them, for what was derived from it.
            limit: The most memories on the page.
            newest: Begin with the newest.
            cursor: The ``cursor`` of the page before.
            filters: Further conditions; see ``search``.
        """
        service = await self._opened()
        page = await service.page(
            self._whose(user),
            cursor=cursor,
            limit=limit,
            newest=newest,
            filters=narrowed(filters, session, kind),
        )
        return Memories(page.memories, cursor=page.cursor)

    async def update(
        self,
        memory_id: str,
        message: Addable | None = None,
        *,
        user: str | None = None,
        session: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        importance: float | None = None,
        marks: str | Sequence[str] | None = None,
        version: int | None = None,
    ) -> MemoryItem:
        """Change a memory and return its new version; the old one stays in ``history``.

        Facts are derived from a new message again, and those derived from the old one go.

        Args:
            memory_id: The memory to change.
            message: A new message in its place.
            user: Whose memory it is.
            session: Its conversation, if its id is not unique.
            metadata: New metadata in place of the present one.
            importance: A new importance, from 0 to 1.
            marks: New marks in place of the present ones.
            version: Change it only if it is still at this version.

        Raises:
            UnknownMemory: There is no such memory.
            VersionConflict: It is no longer at ``version``.
        """
        service = await self._opened()
        if all(each is None for each in (message, metadata, importance, marks)):
            raise InvalidInput(
                "update() has nothing to change; pass message, metadata, importance or marks"
            )
        return await service.update(
            self._whose(user),
            memory_id,
            message if message is None or isinstance(message, str) else as_said(message)[0],
            metadata=metadata,
            importance=importance,
            marks=marks,
            version=version,
            session_id=session,
        )

    async def delete(
        self,
        memory_ids: str | Sequence[str],
        *,
        user: str | None = None,
        session: str | None = None,
    ) -> Deleted:
        """Delete memories, with everything derived from them; return what was deleted."""
        service = await self._opened()
        return await service.delete(self._whose(user), as_ids(memory_ids), session_id=session)

    async def delete_session(self, session: str, *, user: str | None = None) -> Deleted:
        """Delete a conversation: what was said in it, what was derived, and its working memory."""
        service, user = await self._opened(), self._whose(user)
        scope, store = Scope(user, check_own("session id", session)), self._store
        async with noted(store.erasures, "conversation", user, store.clock, session=session):
            deleted = await service.delete_memory(user, session)
            await store.delete(scope)
        return deleted

    async def delete_user(self, user: str) -> Erased:
        """Erase a user: memories, facts, versions, conversations, vectors and the recall log.

        Returns:
            What was deleted, and what a search of the store and the index afterwards found left.
            It is true if nothing is left.
        """
        service, user = await self._opened(), self._whose(user)
        async with noted(self._store.erasures, "user", user, self._store.clock):
            await self._recalls.forget(user)
            deleted = await service.delete_memory(user)
            await self._store.delete(Scope(user))
        return Erased(deleted, await service.verify_erasure(user))

    async def history(
        self, memory_id: str, *, user: str | None = None, session: str | None = None
    ) -> Memories:
        """Return every version of a memory, oldest first, the present one last."""
        service = await self._opened()
        return Memories(await service.history(self._whose(user), memory_id, session_id=session))

    async def facts(
        self,
        *,
        user: str | None = None,
        as_of: Time | None = None,
        superseded: bool = False,
        limit: int = 100,
    ) -> Memories:
        """Return what is believed about a user, newest first.

        Args:
            user: The user.
            as_of: What was believed at this time, instead of now.
            superseded: Return what is no longer believed, instead.
            limit: The most facts to return.
        """
        service, most = await self._opened(), count_in("limit", limit, _MOST)
        filters: dict[str, Any] = {}
        if as_of is not None:
            filters["as_of"] = as_of
        if superseded:
            filters["superseded"] = True
        return Memories(await service.facts(self._whose(user), top_k=most, filters=filters))

    def session(self, session_id: str, *, user: str | None = None) -> AsyncSession:
        """Return the working memory of a conversation: messages, read within a budget of tokens."""
        scope = Scope(self._whose(user), check_own("session id", session_id))
        return AsyncSession(self._opened, self._store, scope)

    async def sessions(self, *, user: str | None = None) -> Names:
        """Return the names of a user's conversations."""
        await self._opened()
        names = await self._store.sessions(self._whose(user))
        return [name for name in names if not name.startswith(RESERVED_PREFIX)]

    @property
    def review(self) -> AsyncReview:
        """What waits for a decision: facts to approve, and messages that are held back."""
        return AsyncReview(self._opened, self._whose)

    async def settle(self, *, user: str | None = None) -> Status:
        """Finish now what is still being derived or embedded for a user; return what failed."""
        service = await self._opened()
        return await service.settled(self._whose(user))

    async def retry(self, *, user: str | None = None) -> int:
        """Start derivations again that failed for good; return how many."""
        service = await self._opened()
        return await service.retry(self._whose(user))


def narrowed(
    filters: Filters | None, session: str | None, kind: str | Sequence[str] | None
) -> dict[str, Any]:
    """Return filters together with those that have arguments of their own."""
    if filters is not None and not isinstance(filters, Mapping):
        raise TypeError(f"filters must be a dict of conditions, got {type(filters).__name__}")
    own = dict(filters) if filters is not None else {}
    if session is not None:
        own["session_id"] = session
    if kind is not None:
        own.setdefault("kind", kind)
    return own
