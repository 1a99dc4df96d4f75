"""``MemoryService``: the contract of long-term memory, by user and session.

Seven methods are required: ``start``, ``stop``, ``health``, ``add_memory``, ``search_memory``,
``list_memory`` and ``delete_memory``. The others are optional: they raise ``NotImplementedError``
until a subclass implements them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

from ..events import EventStream
from ..lifecycle import Running
from ..verbs import Observed
from .values.forms import query_text
from .values.memory import MemoryItem, Said

if TYPE_CHECKING:  # slow to import
    from ..retrieval.hits import WhyNot
    from ..store.users import Usage, UserPage
    from .values.receipt import Receipt
    from .values.results import Deleted, Erasure, MemoryHit, Page, Status
    from .values.review import Decided, Proposals

DEFAULT_SESSION = "default"

# The methods that a service may leave out.
_OPTIONAL = frozenset(
    {"get", "update", "delete", "count", "history", "search", "why_not", "facts", "page"}
    | {"quarantined", "release", "verify_erasure", "users", "usage"}
    | {"waiting", "approve", "reject", "undo"}
)

Filters = Mapping[str, Any]


class MemoryService(Observed, Running, ABC):
    """Long-term memory for many users. Each user's memories are separate from all others'.

    A message may be a ``Message``, a ``Msg``, a dict with ``role`` and ``content``, or a str; it
    comes back in the form it was given, as a copy. ``async with`` starts and stops the service.
    Each call of a public method is an operation that listeners on ``events`` are notified of.

    Example::

        async with InMemoryMemoryService() as service:
            await service.add_memory("ann", ["I live in Oslo"])
    """

    operations = "service"

    @abstractmethod
    async def start(self) -> None:
        """Open the service's resources. A second call does nothing."""

    @abstractmethod
    async def stop(self) -> None:
        """Close what ``start`` opened. The service can be started again."""

    @abstractmethod
    async def health(self) -> bool:
        """Return whether the service is started and its backend answers."""

    @abstractmethod
    async def add_memory(
        self,
        user_id: str,
        messages: Sequence[Said] | Said,
        session_id: str | None = None,
        *,
        marks: str | Sequence[str] | None = None,
    ) -> Receipt:
        """Add messages to the end of a session.

        Args:
            user_id: The user whose memory this is.
            messages: One message or several, in any of the four forms.
            session_id: The session to add to; ``"default"`` if ``None``.
            marks: Labels to filter by later.

        Returns:
            The ids of the new memories, as a list that also says what happened to the others. A
            message whose id is already in the session is skipped.

        Raises:
            NotStarted: The service is not running.
            InvalidInput: A message, an id or a mark is not valid. Nothing was stored.
            SecretRefused: A message holds a secret and the settings refuse secrets.
        """

    @abstractmethod
    async def search_memory(
        self,
        user_id: str,
        messages: Sequence[Said] | Said,
        filters: Filters | None = None,
        *,
        top_k: int | None = None,
    ) -> list[Any]:
        """Return the messages that answer the last of ``messages``, best first.

        Equal scores are in the order of time; if ``top_k`` cuts them off, the newest are kept.

        Args:
            user_id: The user to search.
            messages: The query: a message, or several of which the last counts.
            filters: Conditions: ``session_id``, ``role``, ``name``, ``kind``, ``marks``,
                ``without``, ``since``, ``until``, ``as_of``, ``metadata``, ``min_score``, and
                ``AND``, ``OR``, ``NOT`` with lists of conditions. May also hold ``top_k``.
            top_k: The most results to return; 100 if ``None``.

        Returns:
            Messages in the form in which they were added.

        Raises:
            NotStarted: The service is not running.
            InvalidInput: A filter is unknown or its value is not valid.
        """

    @abstractmethod
    async def list_memory(self, user_id: str, filters: Filters | None = None) -> list[Any]:
        """Return one numbered page of memories, in the order they were added or last changed.

        Args:
            user_id: The user whose memories to list.
            filters: ``page_num`` (from 1), ``page_size`` (10 by default), and the conditions of
                ``search_memory``.

        Returns:
            Messages in the form in which they were added.

        Raises:
            NotStarted: The service is not running.
            InvalidInput: A filter is unknown or its value is not valid.
        """

    @abstractmethod
    async def delete_memory(self, user_id: str, session_id: str | None = None) -> Deleted:
        """Delete a session, or all memories of a user, with everything derived from them.

        Args:
            user_id: The user whose memories to delete.
            session_id: The session to delete; ``None`` deletes everything of the user.

        Returns:
            What was deleted.

        Raises:
            NotStarted: The service is not running.
            InvalidInput: An id is not valid. An empty session id never means "everything".
        """

    async def get(
        self, user_id: str, memory_id: str, *, session_id: str | None = None
    ) -> MemoryItem | None:
        """Return a memory, or ``None``; if several sessions have that id, the newest."""
        self._not_offered("get")

    async def update(
        self,
        user_id: str,
        memory_id: str,
        value: Said | None = None,
        *,
        metadata: Mapping[str, Any] | None = None,
        importance: float | None = None,
        marks: str | Sequence[str] | None = None,
        version: int | None = None,
        session_id: str | None = None,
    ) -> MemoryItem:
        """Change a memory and return its new version; the old one stays in ``history``.

        Args:
            user_id: The user whose memory it is.
            memory_id: The memory to change.
            value: A new message in its place.
            metadata: New metadata in place of the present one.
            importance: A new importance.
            marks: New marks in place of the present ones.
            version: Change the memory only if it is still at this version. Without it, the change
                is retried until it succeeds.
            session_id: The session of the memory, if its id is not unique.

        Raises:
            UnknownMemory: There is no such memory.
            VersionConflict: The memory is no longer at ``version``.
            InvalidInput: There is nothing to change, or an argument is not valid.
        """
        self._not_offered("update")

    async def delete(
        self, user_id: str, memory_ids: str | Sequence[str], *, session_id: str | None = None
    ) -> Deleted:
        """Delete memories by id, with everything derived from them; return what was deleted."""
        self._not_offered("delete")

    async def count(self, user_id: str, filters: Filters | None = None) -> int:
        """Return the number of memories that match ``filters``."""
        self._not_offered("count")

    async def history(
        self, user_id: str, memory_id: str, *, session_id: str | None = None
    ) -> list[MemoryItem]:
        """Return every stored version of a memory, oldest first, the present one last."""
        self._not_offered("history")

    async def search(
        self,
        user_id: str,
        query: Sequence[Said] | Said,
        *,
        top_k: int | None = None,
        filters: Filters | None = None,
        neighbours: bool = True,
        explain: bool = False,
        now: float | None = None,
        min_relevance: float | None = None,
    ) -> list[MemoryHit]:
        """Return the best memories with their scores, best first.

        Args:
            user_id: The user to search.
            query: The question: a message, or several of which the last counts.
            top_k: The most hits to return; 10 if ``None``.
            filters: The conditions of ``search_memory``.
            neighbours: Also find messages next to a match.
            explain: Add to each hit the reasons for its rank.
            now: The time of the question, in seconds: "last week" counts from it.
            min_relevance: Leave out hits that score less, from 0 to 1. Without it every match is
                returned, except lessons that do not concern the task.

        Raises:
            NotStarted: The service is not running.
            InvalidInput: A filter is unknown or an argument is not valid.

        Example::

            [hit] = await service.search("ann", "Where does Ann live?", top_k=1)
            print(hit.score, hit.memory.text)
        """
        self._not_offered("search")

    async def why_not(
        self,
        user_id: str,
        query: Sequence[Said] | Said,
        memory_id: str,
        *,
        top_k: int | None = None,
        filters: Filters | None = None,
        now: float | None = None,
    ) -> WhyNot:
        """Explain why ``search`` does not return a memory, and what ranks above it."""
        self._not_offered("why_not")

    async def facts(
        self, user_id: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> list[MemoryItem]:
        """Return facts about a user, newest first; at most ``top_k`` (100 by default).

        Only facts that hold now, unless ``filters`` has ``as_of`` or ``superseded``.
        """
        self._not_offered("facts")

    async def page(
        self,
        user_id: str,
        *,
        cursor: str | None = None,
        limit: int = 50,
        newest: bool = False,
        filters: Filters | None = None,
    ) -> Page:
        """Return one page of memories, in the order they were added or last changed.

        Additions and deletions between two calls never shift a page. A memory that is changed
        moves to the end.

        Args:
            user_id: The user whose memories to list.
            cursor: The ``cursor`` of the page before; ``None`` for the first page.
            limit: The most memories on the page.
            newest: Begin with the newest.
            filters: The conditions of ``search_memory``.

        Raises:
            NotStarted: The service is not running.
            InvalidInput: The cursor, the limit or a filter is not valid.
        """
        self._not_offered("page")

    async def verify_erasure(self, user_id: str) -> Erasure:
        """Search the store and the index for anything left of a user, and return what is found."""
        self._not_offered("verify_erasure")

    async def quarantined(self, user_id: str) -> list[MemoryItem]:
        """Return the quarantined memories of a user for review, oldest first."""
        self._not_offered("quarantined")

    async def release(
        self, user_id: str, memory_ids: str | Sequence[str], *, session_id: str | None = None
    ) -> list[str]:
        """Release memories from quarantine, with what was derived from them; return the ids."""
        self._not_offered("release")

    async def waiting(
        self, user_id: str, *, cursor: str | None = None, limit: int = 50
    ) -> Proposals:
        """Return one page of derived memories that wait for approval, oldest first.

        Each with what was said, and with what it would supersede. What is in quarantine comes up
        once it is released.
        """
        self._not_offered("waiting")

    async def approve(self, user_id: str, memory_ids: str | Sequence[str]) -> Decided:
        """Approve memories that wait: they hold from now on.

        The result does not depend on the order of approvals: of two facts of which the later
        supersedes the earlier, the later holds. Repeating a decision changes nothing; of several
        concurrent ones about a memory, one wins.

        Args:
            user_id: The user whose memories they are.
            memory_ids: One id or several.

        Raises:
            UnknownMemory: There is no such memory. Nothing was decided.
            InvalidInput: A memory was never up for review. Nothing was decided.
        """
        self._not_offered("approve")

    async def reject(self, user_id: str, memory_ids: str | Sequence[str]) -> Decided:
        """Reject memories that wait: they are not derived again from the same messages.

        Like ``approve`` otherwise. A new message that says the same is derived from anew.
        """
        self._not_offered("reject")

    async def undo(self, user_id: str, memory_ids: str | Sequence[str]) -> Decided:
        """Undo the last decision about memories: they wait again, like ``approve`` otherwise.

        What an approved memory superseded holds again. A memory that was deleted cannot be
        undone, nor a rejected one whose message has changed since.
        """
        self._not_offered("undo")

    async def status(self, user_id: str) -> Status:
        """Return which derivation jobs are pending or failed, and the state of the embedder.

        A service that derives nothing has no jobs.
        """
        from .values.results import Status

        return Status(0, 0, {})

    async def settled(self, user_id: str) -> Status:
        """Run a user's pending derivation jobs now, and return the status afterwards."""
        return await self.status(user_id)

    async def retry(self, user_id: str) -> int:
        """Restart derivation jobs that failed for good; return how many."""
        return 0

    async def users(self, *, cursor: str | None = None, limit: int = 100) -> UserPage:
        """Return one page of the users who have records in the store.

        Pass each page's ``cursor`` to the next call until it is ``None``; a page may be short, or
        even empty, before that. A user who is there throughout is returned exactly once.
        """
        self._not_offered("users")

    async def usage(self, user_id: str) -> Usage:
        """Return how much a user stores, including old versions and working memory."""
        self._not_offered("usage")

    @cached_property
    def events(self) -> EventStream:
        """The stream of this service's events, to subscribe to."""
        return EventStream()

    def offers(self, verb: str) -> bool:
        """Return whether this service implements a method; an optional one may raise instead."""
        own = getattr(type(self), verb, None)
        return own is not None and not (verb in _OPTIONAL and own is getattr(MemoryService, verb))

    async def get_query_text(self, message: Said) -> str:
        """Return the text of a message as a search query."""
        return query_text(message)

    def _not_offered(self, verb: str) -> NoReturn:
        raise NotImplementedError(f"{type(self).__name__} does not offer {verb}()")
