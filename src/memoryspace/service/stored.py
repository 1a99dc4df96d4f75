"""``StoredMemoryService``: the memory service on top of a store and a searcher.

The store is the source of truth. The index only names candidates, and every hit is read from the
store. Each backend is a subclass that opens another store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgspec.structs import replace as change

from ..errors import InvalidInput, StoreError
from ..events import EventStream
from ..loops import PerLoop
from ..record import RESERVED_PREFIX, Scope, Where, is_number
from ..retrieval.hits import WhyNot
from ..store import Address, KeepsVectors, Store, open_store
from ..store.users import USERS_AT_ONCE, Usage, UserPage
from .base import DEFAULT_SESSION, Filters
from .deriving.contract import Deriver
from .deriving.derivers import all_of, is_about_people, kinds_of
from .learning.tool_calls import ToolCalls
from .learning.trajectories import Trajectories
from .reading.arguments import as_ids, check_own, check_version, least_relevance, not_started
from .reading.filters import (
    DEFAULT_HITS,
    FOR_LIST,
    FOR_SEARCH,
    MOST_HITS,
    CheckedFilters,
    count_in,
    read,
)
from .reading.finding import Finding
from .reading.instructions import standing
from .reading.listing import Listing, seq_of
from .review.approvals import Approvals
from .review.rejections import REBUILT
from .search import Searcher
from .search.opening import SearchPlace, searcher_on
from .settings import ServiceSettings
from .values.kinds import FACT
from .values.memory import RAW, MemoryItem, Said
from .values.receipt import Receipt
from .values.results import Deleted, Erasure, MemoryHit, Page, Status
from .values.review import Decided, Proposals
from .writing.admission import own_marks
from .writing.erasing import DerivedKinds, Eraser
from .writing.quarantine import Review
from .writing.repository import MemoryRepository
from .writing.writer import MemoryWriter

_PROBE = Scope(RESERVED_PREFIX + "health", "probe")
_SCORE_DIGITS = 9  # significant digits in which scores are compared


class StoredMemoryService(Trajectories, ToolCalls):
    """Long-term memory in any store.

    Derivers make further memories, of their own kinds, from messages. Searches and lists then
    return those kinds unless the filters name another ``kind``. A *personal* service searches the
    messages together with the facts derived from them: a fact leads to the messages it came from
    and says whether they still hold.

    Args:
        store: A store, which the caller closes; or an address or a folder (see ``open_store``),
            which this service opens and closes.
        settings: How to search, what to accept and how long to keep it.
        deriver: A single deriver, short for ``derivers=[deriver]``.
        derivers: What makes memories from messages, such as ``PersonalDeriver()``.
        search: Where the index is: in this ``"process"``, or in the ``"server"`` (PostgreSQL only).
        searcher: A searcher of your own, used instead of ``search``.
        is_personal: Whether the service is personal; by default the derivers decide.

    Example::

        async with StoredMemoryService("sqlite:///memories.db") as service:
            await service.add_memory("ann", ["I live in Oslo"])
    """

    def __init__(
        self,
        store: Store | Address,
        *,
        settings: ServiceSettings | None = None,
        deriver: Deriver | None = None,
        derivers: Sequence[Deriver] = (),
        search: SearchPlace = "process",
        searcher: Searcher | None = None,
        is_personal: bool | None = None,
    ) -> None:
        self._owns_store = not isinstance(store, Store)
        self.store = store = store if isinstance(store, Store) else open_store(store)
        self.settings = ServiceSettings() if settings is None else settings
        derivers = all_of(deriver, derivers)
        if is_personal is None:
            is_personal = any(map(is_about_people, derivers))
        if searcher is None:
            searcher = searcher_on(store, self.settings, search, personal=is_personal)
        self.searcher = searcher
        self._repository = MemoryRepository(
            store, max_versions=self.settings.max_versions, on_change=self.searcher.expect
        )
        self._kinds = kinds_of(derivers) if derivers else (RAW,)
        searched = (RAW, *self._kinds) if is_personal else self._kinds
        self._finding = Finding(self._repository, self.searcher, searched, with_facts=is_personal)
        self._listing = Listing(self._repository, self._kinds)
        self._derived = DerivedKinds(store, self._kinds if derivers else ())
        self._eraser = Eraser(self._repository, self.searcher, self._derived)
        self._review = Review(self._repository, self._eraser)
        self._writer = MemoryWriter(
            self._repository, self.searcher, self._eraser, self.settings, derivers
        )
        self._worker = self._writer.worker
        self._approvals = Approvals(self._repository, self._eraser, self._worker)
        if self._worker is not None:
            self._worker.on_resume = self._approvals.resume
        self._is_started = False
        self._lifecycle_lock = PerLoop(asyncio.Lock)

    def __repr__(self) -> str:
        state = "started" if self._is_started else "not started"
        return f"<{type(self).__name__} on {type(self.store).__name__}, {state}>"

    @property
    def events(self) -> EventStream:
        """The store's stream of events, to subscribe to."""
        return self.store.events

    # -- lifecycle ---------------------------------------------------------------------------------

    async def start(self) -> None:
        async with self._lifecycle_lock.get():
            if self._is_started:
                return
            try:
                await self._reach()
                await self._derived.announce()
            except BaseException:
                await self._let_go()
                raise
            if self._worker is not None:
                self._worker.start()
            self._is_started = True

    async def stop(self) -> None:
        async with self._lifecycle_lock.get():
            if not self._is_started:
                return
            self._is_started = False
            if self._worker is not None:
                await self._worker.stop()
            await self.searcher.close()
            await self._let_go()

    async def health(self) -> bool:
        if not self._is_started:
            return False
        try:
            await self._reach()
        except (StoreError, OSError):
            return False
        return True

    async def _reach(self) -> None:
        """Send the store a cheap query; raise its error if it does not answer."""
        await self.store.count(_PROBE, Where(ids=frozenset()))

    async def _let_go(self) -> None:
        """Close the store if this service opened it."""
        if self._owns_store:
            await self.store.close()

    # -- writing -----------------------------------------------------------------------------------

    async def add_memory(
        self,
        user_id: str,
        messages: Sequence[Said] | Said,
        session_id: str | None = None,
        *,
        marks: str | Sequence[str] | None = None,
    ) -> Receipt:
        scope = self._session(user_id, session_id)
        return await self._add(scope, messages, {}, marks=own_marks(marks))

    async def _add(
        self,
        scope: Scope,
        messages: Sequence[Said] | Said,
        details: Mapping[str, Any],
        *,
        marks: frozenset[str] = frozenset(),
    ) -> Receipt:
        return await self._writer.add(scope, messages, details, marks)

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
        scope = self._scope(user_id, session_id)
        if (value, metadata, importance, marks) == (None, None, None, None):
            raise InvalidInput(
                "update() has nothing to change; pass value, metadata, importance or marks"
            )
        check_version(version)
        if importance is not None and not is_number(importance):
            raise InvalidInput(f"importance must be a number, got {importance!r}")
        new = await self._writer.update(
            scope,
            memory_id,
            value=value,
            metadata=metadata,
            importance=importance,
            marks=marks,
            version=version,
        )
        if value is not None and new.kind not in REBUILT:
            await self._approvals.corrected(user_id, memory_id)
        return new

    async def release(
        self, user_id: str, memory_ids: str | Sequence[str], *, session_id: str | None = None
    ) -> list[str]:
        scope = self._scope(user_id, session_id)
        return await self._review.release(scope, as_ids(memory_ids))

    # -- review ------------------------------------------------------------------------------------

    async def waiting(
        self, user_id: str, *, cursor: str | None = None, limit: int = 50
    ) -> Proposals:
        user, limit = self._scope(user_id, None).user, count_in("limit", limit, MOST_HITS)
        return await self._approvals.page(user, seq_of(cursor), limit)

    async def approve(self, user_id: str, memory_ids: str | Sequence[str]) -> Decided:
        user = self._scope(user_id, None).user
        return await self._approvals.approve(user, as_ids(memory_ids))

    async def reject(self, user_id: str, memory_ids: str | Sequence[str]) -> Decided:
        user = self._scope(user_id, None).user
        return await self._approvals.reject(user, as_ids(memory_ids))

    async def undo(self, user_id: str, memory_ids: str | Sequence[str]) -> Decided:
        user = self._scope(user_id, None).user
        return await self._approvals.undo(user, as_ids(memory_ids))

    # -- reading -----------------------------------------------------------------------------------

    async def search_memory(
        self,
        user_id: str,
        messages: Sequence[Said] | Said,
        filters: Filters | None = None,
        *,
        top_k: int | None = None,
    ) -> list[Any]:
        scope = self._scope(user_id, None)
        checked = (await self._checked(filters, FOR_SEARCH)).with_top_k(top_k)
        query = self._finding.query(messages, checked, neighbours=bool(checked.neighbours))
        hits = await self._finding.hits(scope, query, min_score=checked.min_score)
        hits.sort(key=lambda hit: (-rounded(hit.score), hit.memory.seq))
        return [hit.memory.said() for hit in hits]

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
        scope = self._scope(user_id, None)
        checked = (await self._checked(filters, ("top_k", "min_score"))).with_top_k(
            top_k, DEFAULT_HITS
        )
        wanted = self._finding.query(
            query, checked, neighbours=neighbours, explain=explain, now=now
        )
        least = least_relevance(min_relevance, checked.min_score)
        return await self._finding.hits(scope, wanted, min_score=least)

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
        scope = self._scope(user_id, None)
        checked = (await self._checked(filters, ("top_k",))).with_top_k(top_k, DEFAULT_HITS)
        return await self._finding.why_not(
            scope, self._finding.query(query, checked, now=now), memory_id
        )

    async def facts(
        self, user_id: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> list[MemoryItem]:
        scope, checked = self._scope(user_id, None), await self._checked(filters, ("top_k",))
        if checked.kinds is not None:
            raise InvalidInput("facts() returns facts only; use page() for another kind")
        return await self._listing.newest(scope, change(checked.with_top_k(top_k), kinds=(FACT,)))

    async def list_memory(self, user_id: str, filters: Filters | None = None) -> list[Any]:
        scope, checked = self._scope(user_id, None), await self._checked(filters, FOR_LIST)
        memories = await self._listing.numbered(scope, checked)
        return [each.said() for each in memories]

    async def page(
        self,
        user_id: str,
        *,
        cursor: str | None = None,
        limit: int = 50,
        newest: bool = False,
        filters: Filters | None = None,
    ) -> Page:
        scope, checked = self._scope(user_id, None), await self._checked(filters)
        return await self._listing.after(
            scope, checked, cursor, count_in("limit", limit, MOST_HITS), newest
        )

    async def count(self, user_id: str, filters: Filters | None = None) -> int:
        scope, checked = self._scope(user_id, None), await self._checked(filters)
        return await self._listing.count(scope, checked)

    async def instructions(self, user_id: str) -> list[MemoryItem]:
        """Return the user's standing instructions ("always answer in French"), newest first.

        They apply to every question, so searches do not return them among the hits.
        """
        return await standing(self._repository, self._scope(user_id, None))

    async def quarantined(self, user_id: str) -> list[MemoryItem]:
        return await self._review.held_back(self._scope(user_id, None))

    async def get(
        self, user_id: str, memory_id: str, *, session_id: str | None = None
    ) -> MemoryItem | None:
        return await self._repository.find(self._scope(user_id, session_id), memory_id)

    async def history(
        self, user_id: str, memory_id: str, *, session_id: str | None = None
    ) -> list[MemoryItem]:
        memory = await self.get(user_id, memory_id, session_id=session_id)
        return [] if memory is None else [*await self._repository.versions(memory), memory]

    # -- forgetting --------------------------------------------------------------------------------

    async def delete_memory(self, user_id: str, session_id: str | None = None) -> Deleted:
        scope = self._scope(user_id, session_id)
        if scope.session is not None:
            deleted = await self._eraser.session(scope)
        else:
            deleted = await self._eraser.user(user_id)
        return self._deleted(scope, deleted)

    async def delete(
        self, user_id: str, memory_ids: str | Sequence[str], *, session_id: str | None = None
    ) -> Deleted:
        scope = self._scope(user_id, session_id)
        return self._deleted(scope, await self._eraser.memories(scope, as_ids(memory_ids)))

    async def verify_erasure(self, user_id: str) -> Erasure:
        return await self._eraser.verify(self._scope(user_id, None).user)

    async def users(self, *, cursor: str | None = None, limit: int = USERS_AT_ONCE) -> UserPage:
        if not self._is_started:
            raise not_started(self)
        page = await self.store.users(cursor=cursor, limit=limit)
        own = (user for user in page.users if not user.startswith(RESERVED_PREFIX))
        return UserPage(tuple(own), page.cursor)

    async def usage(self, user_id: str) -> Usage:
        usage = await self.store.usage(self._scope(user_id, None).user)
        if not isinstance(self.store, KeepsVectors):
            return usage
        kept = (await self.store.vector_spaces(user_id)).values()
        return change(
            usage,
            vectors=sum(each.count for each in kept),
            vector_bytes=sum(each.size for each in kept),
        )

    def _deleted(self, scope: Scope, deleted: Deleted) -> Deleted:
        self.events.emit("memories_deleted", scope=scope, ids=deleted.ids)
        return deleted

    # -- deriving ----------------------------------------------------------------------------------

    async def status(self, user_id: str) -> Status:
        self._scope(user_id, None)
        found = Status(0, 0, {}) if self._worker is None else await self._worker.status(user_id)
        embedder = await self.searcher.embedder_status(user_id)
        return change(found, embedder=embedder, waiting=await self._approvals.count(user_id))

    async def settled(self, user_id: str) -> Status:
        """Run a user's pending derivation jobs now, and return the status afterwards.

        Also waits for the index's background work.
        """
        self._scope(user_id, None)
        await self._approvals.resume(user_id)
        if self._worker is not None:
            await self._worker.settle(user_id)
        await self.searcher.settle(user_id)
        return await self.status(user_id)

    async def retry(self, user_id: str) -> int:
        self._scope(user_id, None)
        return 0 if self._worker is None else await self._worker.retry(user_id)

    # -- arguments ---------------------------------------------------------------------------------

    def _scope(self, user_id: str, session_id: str | None) -> Scope:
        if not self._is_started:
            raise not_started(self)
        check_own("user id", user_id)
        if session_id is not None:
            check_own("session id", session_id)
        return Scope(user_id, session_id)

    async def _checked(self, filters: Filters | None, also: Collection[str] = ()) -> CheckedFilters:
        """Read filters; unknown kinds must have been announced by a deriver on this store."""
        checked = read(filters, also=also)
        if checked.foreign_kinds:
            checked.check_kinds(await self._derived.all())
        return checked

    def _session(self, user_id: str, session_id: str | None) -> Scope:
        return self._scope(user_id, DEFAULT_SESSION if session_id is None else session_id)


def rounded(score: float) -> float:
    """Return a score rounded for comparison."""
    return float(f"{score:.{_SCORE_DIGITS}g}")
