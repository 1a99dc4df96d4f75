"""``MemoryService``: long-term memory, by user and session. The contract, and what is optional.

Seven verbs are a service: ``start``, ``stop``, ``health``, ``add_memory``, ``search_memory``,
``list_memory``, ``delete_memory``. A service of your own implements these; the others say that
they are not offered until it does.
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

if TYPE_CHECKING:  # what they are made of takes its time to load
    from ..retrieval.hits import WhyNot
    from ..store.users import Usage, UserPage
    from .values.receipt import Receipt
    from .values.results import Deleted, Erasure, MemoryHit, Page, Status

DEFAULT_SESSION = "default"

# The verbs that a service need not have.
_OPTIONAL = frozenset(
    {"get", "update", "delete", "count", "history", "search", "why_not", "facts", "page"}
    | {"quarantined", "release", "verify_erasure", "users", "usage"}
)

Filters = Mapping[str, Any]


class MemoryService(Observed, Running, ABC):
    """What many users' agents have learnt, each user's apart from all others'.

    Messages may be ``Message``, ``Msg``, dicts with ``role`` and ``content``, or plain text; they
    come back in the form they were given, as copies. ``async with`` starts and stops. Its verbs are
    operations: whoever listens to ``events``, where it has that, hears of each call.
    """

    operations = "service"

    @abstractmethod
    async def start(self) -> None:
        """Open what is needed. Calling it twice does nothing the second time."""

    @abstractmethod
    async def stop(self) -> None:
        """Give back what was opened here. The service can be started again."""

    @abstractmethod
    async def health(self) -> bool:
        """Tell whether the service is started and what it stands on answers."""

    @abstractmethod
    async def add_memory(
        self,
        user_id: str,
        messages: Sequence[Said] | Said,
        session_id: str | None = None,
        *,
        marks: str | Sequence[str] | None = None,
    ) -> Receipt:
        """Remember messages, at the end of a session (``"default"`` if none is named).

        Returns the ids of those that are new, as a list that also tells what became of the others:
        one whose id is in the session already is skipped. ``marks`` are to ask for them by.
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
        """Return what answers the last of the messages: the best first, equals as they were said.

        At most ``top_k`` of them (100), of equals the newest. ``filters`` may hold that too, and
        ``session_id``, ``role``, ``kind``, ``marks``, ``since``, ``until``, ``min_score``,
        ``metadata``, and ``AND``, ``OR``, ``NOT`` with lists of such conditions. A key that is not
        known is an error.
        """

    @abstractmethod
    async def list_memory(self, user_id: str, filters: Filters | None = None) -> list[Any]:
        """Return one page of what is remembered, in the order it was said or last changed.

        ``filters`` may hold ``page_num`` (from 1), ``page_size`` (10), and the conditions of
        ``search_memory``.
        """

    @abstractmethod
    async def delete_memory(self, user_id: str, session_id: str | None = None) -> Deleted:
        """Forget a session, or with ``None`` everything of a user; return what that was.

        What was derived from it goes too. An empty session id is an error, never "everything".
        """

    async def get(
        self, user_id: str, memory_id: str, *, session_id: str | None = None
    ) -> MemoryItem | None:
        """Return a memory, or ``None``; of several sessions' with one id, the newest."""
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

        ``marks`` take the place of those it has. With ``version``, only if it is still at that one;
        else ``VersionConflict``.
        """
        self._not_offered("update")

    async def delete(
        self, user_id: str, memory_ids: str | Sequence[str], *, session_id: str | None = None
    ) -> Deleted:
        """Forget memories by their ids, with what was derived from them; return what that was."""
        self._not_offered("delete")

    async def count(self, user_id: str, filters: Filters | None = None) -> int:
        """Return how many memories there are."""
        self._not_offered("count")

    async def history(
        self, user_id: str, memory_id: str, *, session_id: str | None = None
    ) -> list[MemoryItem]:
        """Return every version of a memory, the oldest first, the present one last."""
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
        """Return the best memories with their scores, the best first; at most ``top_k`` (10).

        With ``neighbours``, what was said beside a match may be found for its sake. ``explain``
        tells why each is there. ``now`` is when it is asked: "last week" counts from there.
        What is less relevant than ``min_relevance``, from 0 to 1, is not returned: where nothing
        answers, nothing is better than the best of what there is. Without it everything found is,
        but of lessons only what concerns the task.
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
        """Say where a memory falls out of such a ``search``, and who is in front of it."""
        self._not_offered("why_not")

    async def facts(
        self, user_id: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> list[MemoryItem]:
        """Return what is known of a user, the newest first; at most ``top_k`` (100).

        Facts that hold now, unless ``filters`` ask for others: ``as_of``, ``superseded``.
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
        """Return memories one page after another, however many there are.

        Begin without a cursor; what comes or goes between two pages never shifts a page. What is
        changed counts as new: it moves to the end.
        """
        self._not_offered("page")

    async def verify_erasure(self, user_id: str) -> Erasure:
        """Look everywhere for something left of a user, and tell what there is."""
        self._not_offered("verify_erasure")

    async def quarantined(self, user_id: str) -> list[MemoryItem]:
        """Return what is held back, for review, in the order it was said."""
        self._not_offered("quarantined")

    async def release(
        self, user_id: str, memory_ids: str | Sequence[str], *, session_id: str | None = None
    ) -> list[str]:
        """Let quarantined memories be recalled, with what was derived from them; return the ids."""
        self._not_offered("release")

    async def status(self, user_id: str) -> Status:
        """Return what of deriving waits, what failed and why; and how the embedder does.

        Where nothing is derived, nothing waits.
        """
        from .values.results import Status

        return Status(0, 0, {})

    async def settled(self, user_id: str) -> Status:
        """Derive now what waits for a user, and return how far that went."""
        return await self.status(user_id)

    async def retry(self, user_id: str) -> int:
        """Begin again with derivations that were given up; return how many."""
        return 0

    async def users(self, *, cursor: str | None = None, limit: int = 100) -> UserPage:
        """Return users who have something here, page by page.

        Begin without a cursor and go on with the page's until it is ``None``: a page may be short,
        or empty, before the end. Who is there all the while is named once.
        """
        self._not_offered("users")

    async def usage(self, user_id: str) -> Usage:
        """Return how much a user has in the store, old versions and working memory included."""
        self._not_offered("usage")

    @cached_property
    def events(self) -> EventStream:
        """What happens, for whoever listens."""
        return EventStream()

    def offers(self, verb: str) -> bool:
        """Tell whether this service has a verb; one of the contract that it has not raises."""
        own = getattr(type(self), verb, None)
        return own is not None and not (verb in _OPTIONAL and own is getattr(MemoryService, verb))

    async def get_query_text(self, message: Said) -> str:
        """Return the text that a message asks for."""
        return query_text(message)

    def _not_offered(self, verb: str) -> NoReturn:
        raise NotImplementedError(f"{type(self).__name__} does not offer {verb}()")
