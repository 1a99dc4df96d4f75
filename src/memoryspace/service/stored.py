"""``StoredMemoryService``: the service, written once over a store and a searcher.

The store is the truth, the index a hint: whatever a search names is read from the store. Every
backend is this class with another store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace as change

from ..errors import InvalidInput, StoreError
from ..events import EventStream
from ..loops import PerLoop
from ..record import RESERVED_PREFIX, Scope, Where, check_id, is_number
from ..retrieval.hits import WhyNot
from ..store import Store
from .admission import Admission, own_marks, remarked
from .arguments import as_ids, check_own, check_relevance, check_version, not_started
from .base import DEFAULT_SESSION, Filters, MemoryService
from .deriving.contract import Deriver
from .deriving.worker import Worker
from .envelope import entry_of, record_of
from .erasing import DerivedKinds, Eraser
from .filters import FOR_LIST, FOR_SEARCH, MOST_HITS, count_in, read
from .finding import Finding
from .instructing import standing
from .kinds import NO_MEMORIES
from .listing import Listing
from .memory import RAW, MemoryItem, Said
from .results import Deleted, Erasure, MemoryHit, Page, Status
from .review import Review
from .search import Searcher
from .search.resident import ResidentSearcher
from .secrecy import purged
from .settings import ServiceSettings
from .shelf import Shelf

_PROBE = Scope(RESERVED_PREFIX + "health", "probe")
_EQUAL = 9  # significant digits of scores that are told apart


class StoredMemoryService(MemoryService):
    """Long-term memory in a store, which stays the caller's to close.

    With a ``deriver``, what was said is also thought about: it makes memories of its own kinds,
    and these are what searches and lists are about, unless another ``kind`` is asked for. A
    *personal* service searches what was said, with what is known from it: a fact leads to the
    messages it came from, and tells whether they still hold.
    """

    def __init__(
        self,
        store: Store,
        *,
        settings: ServiceSettings | None = None,
        deriver: Deriver | None = None,
        searcher: Searcher | None = None,
        is_personal: bool = False,
    ) -> None:
        self.store = store
        self.settings = ServiceSettings() if settings is None else settings
        self._is_personal = is_personal
        self.searcher = self._resident() if searcher is None else searcher
        self._shelf = Shelf(store, max_versions=self.settings.max_versions)
        self._admission = Admission(self.settings)
        self._kinds = (RAW,) if deriver is None else _own_kinds(deriver)
        searched = (RAW, *self._kinds) if is_personal else self._kinds
        self._finding = Finding(self._shelf, self.searcher, searched, with_facts=is_personal)
        self._listing = Listing(self._shelf, self._kinds)
        self._derived = DerivedKinds(store, () if deriver is None else deriver.kinds)
        self._eraser = Eraser(self._shelf, self.searcher, self._derived)
        self._review = Review(self._shelf, self._eraser)
        self._worker = None if deriver is None else self._worker_for(deriver)
        self._is_started = False
        self._turn = PerLoop(asyncio.Lock)  # to start or to stop

    @property
    def events(self) -> EventStream:
        """What happens, for whoever listens."""
        return self.store.events

    # -- lifecycle ---------------------------------------------------------------------------------

    async def start(self) -> None:
        async with self._turn.get():
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
        async with self._turn.get():
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
        """Find out cheaply whether the store answers."""
        await self.store.count(_PROBE, Where(ids=frozenset()))

    async def _let_go(self) -> None:
        """Close what this service opened; a store that was given is not."""

    # -- writing -----------------------------------------------------------------------------------

    async def add_memory(
        self,
        user_id: str,
        messages: Sequence[Said] | Said,
        session_id: str | None = None,
        *,
        marks: str | Sequence[str] | None = None,
    ) -> list[str]:
        """Remember messages at the end of a session, with marks to ask for them by.

        Returns the ids of those that are new: one whose id is in the session already is skipped.
        """
        scope = self._session(user_id, session_id)
        return await self._add(scope, messages, {}, marks=own_marks(marks))

    async def _add(
        self,
        scope: Scope,
        messages: Sequence[Said] | Said,
        details: Mapping[str, Any],
        *,
        marks: frozenset[str] = frozenset(),
    ) -> list[str]:
        memories = await self._admission.admit(scope, messages, self._shelf.now(), marks)
        if any(each.marks for each in memories):
            memories = await self._new_among(scope, memories)
        records = [record_of(each) for each in memories]
        if not records:
            return []
        if self._worker is None:
            added = await self.store.append(scope, records)
        else:
            added = await self._worker.record(scope, records, purged(details))
        await self._keep_newest(scope)
        return added

    async def _new_among(self, scope: Scope, memories: Sequence[MemoryItem]) -> list[MemoryItem]:
        """Leave out what is there, which a store would give the marks of its repetition.

        Else whoever repeats the id of a memory could have it held back.
        """
        there = await self.store.select(scope, Where(ids=frozenset(each.id for each in memories)))
        known = {each.id for each in there}
        new = [each for each in memories if each.id not in known]
        held_back = [each.id for each in new if each.is_quarantined]
        if held_back:
            self.events.emit("memories_quarantined", scope=scope, ids=held_back)
        return new

    async def _keep_newest(self, scope: Scope) -> None:
        """Delete all but the newest of a session, once they have been thought about.

        It is said from where on they are to go, not how many: any number may do this at once.
        """
        most = self.settings.max_messages_per_session
        if most is None:
            return
        beyond = Where(kind=RAW, limit=1, newest=True, skip=most)
        last = await self.store.select(scope, beyond)
        if not last or (self._worker is not None and await self._worker.is_waited_for(scope)):
            return
        gone = await self.store.delete(scope, Where(kind=RAW, before=last[0].seq + 1))
        await self._shelf.forget_versions(scope, gone)
        self.events.emit("memories_evicted", scope=scope, ids=gone)

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
        """Change a memory and return its new version; ``marks`` take the place of those it has.

        With ``version``, only if it is still at that one; else ``VersionConflict``.
        """
        scope = self._scope(user_id, session_id)
        if (value, metadata, importance, marks) == (None, None, None, None):
            raise InvalidInput(
                "update() was told nothing to change: value, metadata, importance or marks"
            )
        check_version(version)
        if importance is not None and not is_number(importance):
            raise InvalidInput(f"importance must be a number, got {importance!r}")

        def edit(memory: MemoryItem) -> MemoryItem:
            edited = self._admission.edited(memory, value, metadata)
            if marks is not None:
                edited = remarked(edited, own_marks(marks))
            return edited if importance is None else change(edited, importance=importance)

        if self._worker is None or value is None:
            return await self._shelf.edit(scope, memory_id, edit, version=version)
        return await self._worker.edit(scope, memory_id, edit, version=version)

    async def release(
        self, user_id: str, memory_ids: str | Sequence[str], *, session_id: str | None = None
    ) -> list[str]:
        """Let quarantined memories be recalled, with what was derived from them; return the ids."""
        scope = self._scope(user_id, session_id)
        return await self._review.release(scope, as_ids(memory_ids))

    # -- reading -----------------------------------------------------------------------------------

    async def search_memory(
        self,
        user_id: str,
        messages: Sequence[Said] | Said,
        filters: Filters | None = None,
    ) -> list[Any]:
        scope, asked = self._scope(user_id, None), read(filters, also=FOR_SEARCH)
        query = self._finding.query(messages, asked, neighbours=bool(asked.neighbours))
        hits = await self._finding.hits(scope, query, min_score=asked.min_score)
        hits.sort(key=lambda hit: (-rounded(hit.score), hit.memory.seq))
        return [hit.memory.said() for hit in hits]

    async def search(
        self,
        user_id: str,
        query: Sequence[Said] | Said,
        *,
        top_k: int = 10,
        filters: Filters | None = None,
        neighbours: bool = True,
        explain: bool = False,
        now: float | None = None,
        min_relevance: float = 0.0,
    ) -> list[MemoryHit]:
        scope, asked = self._scope(user_id, None), read(filters, also=("min_score",))
        asked = change(asked, top_k=count_in("top_k", top_k, MOST_HITS))
        wanted = self._finding.query(query, asked, neighbours=neighbours, explain=explain, now=now)
        least = max(check_relevance(min_relevance), asked.min_score or 0.0)
        return await self._finding.hits(scope, wanted, min_score=least)

    async def why_not(
        self,
        user_id: str,
        query: Sequence[Said] | Said,
        memory_id: str,
        *,
        top_k: int = 10,
        filters: Filters | None = None,
        now: float | None = None,
    ) -> WhyNot:
        """Say where a memory falls out of a search, and who is in front of it."""
        scope, asked = self._scope(user_id, None), read(filters)
        asked = change(asked, top_k=count_in("top_k", top_k, MOST_HITS))
        return await self._finding.why_not(
            scope, self._finding.query(query, asked, now=now), memory_id
        )

    async def list_memory(self, user_id: str, filters: Filters | None = None) -> list[Any]:
        asked = read(filters, also=FOR_LIST)
        memories = await self._listing.numbered(self._scope(user_id, None), asked)
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
        scope, asked = self._scope(user_id, None), read(filters)
        return await self._listing.after(
            scope, asked, cursor, count_in("limit", limit, MOST_HITS), newest
        )

    async def count(self, user_id: str, filters: Filters | None = None) -> int:
        return await self._listing.count(self._scope(user_id, None), read(filters))

    async def instructions(self, user_id: str) -> list[MemoryItem]:
        """Return the standing instructions that hold now ("always answer in French"), newest first.

        They hold whatever is asked, so they stand beside the hits of a search, not among them.
        """
        return await standing(self._shelf, self._scope(user_id, None))

    async def quarantined(self, user_id: str) -> list[MemoryItem]:
        """Return what is held back, for review, in the order it was said."""
        return await self._review.held_back(self._scope(user_id, None))

    async def get(
        self, user_id: str, memory_id: str, *, session_id: str | None = None
    ) -> MemoryItem | None:
        return await self._shelf.find(self._scope(user_id, session_id), memory_id)

    async def history(
        self, user_id: str, memory_id: str, *, session_id: str | None = None
    ) -> list[MemoryItem]:
        memory = await self.get(user_id, memory_id, session_id=session_id)
        return [] if memory is None else [*await self._shelf.versions(memory), memory]

    # -- forgetting --------------------------------------------------------------------------------

    async def delete_memory(self, user_id: str, session_id: str | None = None) -> Deleted:
        scope = self._scope(user_id, session_id)
        if scope.session is not None:
            deleted = await self._eraser.session(scope)
        else:
            deleted = await self._eraser.user(user_id)
        return self._told(scope, deleted)

    async def delete(
        self, user_id: str, memory_ids: str | Sequence[str], *, session_id: str | None = None
    ) -> Deleted:
        scope = self._scope(user_id, session_id)
        return self._told(scope, await self._eraser.memories(scope, as_ids(memory_ids)))

    async def verify_erasure(self, user_id: str) -> Erasure:
        return await self._eraser.verify(self._scope(user_id, None).user)

    def _told(self, scope: Scope, deleted: Deleted) -> Deleted:
        self.events.emit("memories_deleted", scope=scope, ids=deleted.ids)
        return deleted

    # -- deriving ----------------------------------------------------------------------------------

    async def status(self, user_id: str) -> Status:
        """Return how far derivation is: what waits, what failed and why."""
        self._scope(user_id, None)
        return Status(0, 0, {}) if self._worker is None else await self._worker.status(user_id)

    async def settled(self, user_id: str) -> Status:
        """Derive now what waits for a user, and return how far that went."""
        self._scope(user_id, None)
        if self._worker is not None:
            await self._worker.settle(user_id)
        return await self.status(user_id)

    async def retry(self, user_id: str) -> int:
        """Begin again with derivations that were given up; return how many."""
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

    def _session(self, user_id: str, session_id: str | None) -> Scope:
        return self._scope(user_id, DEFAULT_SESSION if session_id is None else session_id)

    def _resident(self) -> ResidentSearcher:
        settings = self.settings
        return ResidentSearcher(
            self.store,
            entry_of,
            embedder=settings.embedder,
            ranking=settings.ranking,
            reranker=settings.reranker,
            zone=settings.zone,
            max_entries=settings.max_indexed,
            personal=self._is_personal,
        )

    def _worker_for(self, deriver: Deriver) -> Worker:
        return Worker(
            self._shelf,
            self.searcher,
            self._eraser,
            deriver,
            judge=self._admission.judged,
            max_attempts=self.settings.max_attempts,
            afterwards=self._keep_newest,
        )


def rounded(score: float) -> float:
    """Return a score as far as it tells two apart."""
    return float(f"{score:.{_EQUAL}g}")


def _own_kinds(deriver: Deriver) -> tuple[str, ...]:
    taken = {RAW, *NO_MEMORIES}
    for kind in deriver.kinds:
        if check_id("a deriver's kind", kind) in taken:
            raise InvalidInput(f"{deriver.name} makes {kind!r}, which is taken; name it otherwise")
    if not deriver.kinds:
        raise InvalidInput(f"{deriver.name} names no kind of memory that it makes")
    return tuple(deriver.kinds)
