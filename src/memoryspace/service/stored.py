"""``StoredMemoryService``: the service, written once over a store and a searcher.

The store is the truth, the index a hint: whatever a search names is read from the store. Every
backend is this class with another store.
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
from .deriving.choosing import all_of, is_about_people, kinds_of
from .deriving.contract import Deriver
from .deriving.worker import Outcome, Recorded, Worker
from .learning.tool_calls import ToolCalls
from .learning.trajectories import Trajectories
from .reading.arguments import as_ids, check_own, check_version, least_relevance, not_started
from .reading.filters import DEFAULT_HITS, FOR_LIST, FOR_SEARCH, MOST_HITS, Asked, count_in, read
from .reading.finding import Finding
from .reading.instructions import standing
from .reading.listing import Listing
from .search import Searcher
from .search.opening import SearchPlace, searcher_on
from .settings import ServiceSettings
from .values.envelope import record_of
from .values.kinds import FACT
from .values.memory import RAW, MemoryItem, Said
from .values.receipt import Receipt
from .values.results import Deleted, Erasure, MemoryHit, Page, Status
from .writing.admission import SUSPICION, Admission, own_marks, remarked
from .writing.erasing import DerivedKinds, Eraser
from .writing.quarantine import Review
from .writing.repository import MemoryRepository
from .writing.secrecy import purged

_PROBE = Scope(RESERVED_PREFIX + "health", "probe")
_EQUAL = 9  # significant digits of scores that are told apart


class StoredMemoryService(Trajectories, ToolCalls):
    """Long-term memory in a store, which stays the caller's to close; or at an address or in a
    folder (see ``open_store``), which this service opens and closes.

    With ``derivers`` (or one ``deriver``), what was said is also thought about: they make memories
    of their own kinds, and these are what searches and lists are about, unless another ``kind`` is
    asked for. A *personal* service searches what was said, with what is known from it: a fact leads
    to the messages it came from, and tells whether they still hold. Whether it is one goes by its
    derivers, unless ``is_personal`` says so.

    ``search`` says where the index is: in this ``"process"``, or in the ``"server"``, which
    PostgreSQL alone can. A ``searcher`` of one's own takes its place.
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
        self._admission = Admission(self.settings)
        self._kinds = kinds_of(derivers) if derivers else (RAW,)
        searched = (RAW, *self._kinds) if is_personal else self._kinds
        self._finding = Finding(self._repository, self.searcher, searched, with_facts=is_personal)
        self._listing = Listing(self._repository, self._kinds)
        self._derived = DerivedKinds(store, self._kinds if derivers else ())
        self._eraser = Eraser(self._repository, self.searcher, self._derived)
        self._review = Review(self._repository, self._eraser)
        self._worker = self._worker_for(derivers) if derivers else None
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
        given = await self._admission.admit(scope, messages, self._repository.now(), marks)
        is_marked = any(each.marks for each in given)
        new = await self._new_among(scope, given) if is_marked else given
        recorded = await self._recorded(scope, new, details) if new else Recorded([], [])
        if new:
            self.searcher.expect(scope, recorded.added)
            await self._keep_newest(scope)
        return receipt_of(given, recorded, is_durable=self.store.is_durable)

    async def _recorded(
        self, scope: Scope, memories: Sequence[MemoryItem], details: Mapping[str, Any]
    ) -> Recorded:
        if self._worker is not None:
            return await self._worker.record(scope, memories, purged(details))
        records = [record_of(each) for each in memories]
        return Recorded(await self.store.append(scope, records), [])

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

        It is said from where on they are to go, not how many: any number may do this at once. Their
        old versions go first: who breaks off there leaves memories, which the next one deletes.
        """
        most = self.settings.max_messages_per_session
        if most is None:
            return
        beyond = Where(kind=RAW, limit=1, newest=True, skip=most)
        last = await self.store.select(scope, beyond)
        if not last or (self._worker is not None and await self._worker.is_waited_for(scope)):
            return
        too_old = Where(kind=RAW, before=last[0].seq + 1)
        there = [each.id for each in await self.store.select(scope, too_old)]
        await self._repository.forget_versions(scope, there)
        gone = await self.store.delete(scope, too_old)
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
            return await self._repository.edit(scope, memory_id, edit, version=version)
        return await self._worker.edit(scope, memory_id, edit, version=version)

    async def release(
        self, user_id: str, memory_ids: str | Sequence[str], *, session_id: str | None = None
    ) -> list[str]:
        scope = self._scope(user_id, session_id)
        return await self._review.release(scope, as_ids(memory_ids))

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
        asked = (await self._asked(filters, FOR_SEARCH)).of_top(top_k)
        query = self._finding.query(messages, asked, neighbours=bool(asked.neighbours))
        hits = await self._finding.hits(scope, query, min_score=asked.min_score)
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
        asked = (await self._asked(filters, ("top_k", "min_score"))).of_top(top_k, DEFAULT_HITS)
        wanted = self._finding.query(query, asked, neighbours=neighbours, explain=explain, now=now)
        least = least_relevance(min_relevance, asked.min_score)
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
        asked = (await self._asked(filters, ("top_k",))).of_top(top_k, DEFAULT_HITS)
        return await self._finding.why_not(
            scope, self._finding.query(query, asked, now=now), memory_id
        )

    async def facts(
        self, user_id: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> list[MemoryItem]:
        scope, asked = self._scope(user_id, None), await self._asked(filters, ("top_k",))
        if asked.kinds is not None:
            raise InvalidInput("facts() is about facts; ask page() for another kind")
        return await self._listing.newest(scope, change(asked.of_top(top_k), kinds=(FACT,)))

    async def list_memory(self, user_id: str, filters: Filters | None = None) -> list[Any]:
        scope, asked = self._scope(user_id, None), await self._asked(filters, FOR_LIST)
        memories = await self._listing.numbered(scope, asked)
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
        scope, asked = self._scope(user_id, None), await self._asked(filters)
        return await self._listing.after(
            scope, asked, cursor, count_in("limit", limit, MOST_HITS), newest
        )

    async def count(self, user_id: str, filters: Filters | None = None) -> int:
        scope, asked = self._scope(user_id, None), await self._asked(filters)
        return await self._listing.count(scope, asked)

    async def instructions(self, user_id: str) -> list[MemoryItem]:
        """Return the standing instructions that hold now ("always answer in French"), newest first.

        They hold whatever is asked, so they stand beside the hits of a search, not among them.
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
        return self._told(scope, deleted)

    async def delete(
        self, user_id: str, memory_ids: str | Sequence[str], *, session_id: str | None = None
    ) -> Deleted:
        scope = self._scope(user_id, session_id)
        return self._told(scope, await self._eraser.memories(scope, as_ids(memory_ids)))

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

    def _told(self, scope: Scope, deleted: Deleted) -> Deleted:
        self.events.emit("memories_deleted", scope=scope, ids=deleted.ids)
        return deleted

    # -- deriving ----------------------------------------------------------------------------------

    async def status(self, user_id: str) -> Status:
        self._scope(user_id, None)
        found = Status(0, 0, {}) if self._worker is None else await self._worker.status(user_id)
        return change(found, embedder=await self.searcher.embedder_status(user_id))

    async def settled(self, user_id: str) -> Status:
        """Derive now what waits for a user, and return how far that went.

        What the index does in the background is waited for, too.
        """
        self._scope(user_id, None)
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

    async def _asked(self, filters: Filters | None, also: Collection[str] = ()) -> Asked:
        """Read filters; a kind that is not ours is one that somebody announced on this store."""
        asked = read(filters, also=also)
        if asked.foreign_kinds:
            asked.check_kinds(await self._derived.all())
        return asked

    def _session(self, user_id: str, session_id: str | None) -> Scope:
        return self._scope(user_id, DEFAULT_SESSION if session_id is None else session_id)

    def _worker_for(self, derivers: Sequence[Deriver]) -> Worker:
        return Worker(
            self._repository,
            self.searcher,
            self._eraser,
            derivers,
            judge=self._admission.judged,
            max_attempts=self.settings.max_attempts,
            afterwards=self._keep_newest,
        )


def receipt_of(
    given: Sequence[MemoryItem], recorded: Recorded, *, is_durable: bool | None
) -> Receipt:
    """Return what became of memories that were given to be stored."""
    new = frozenset(recorded.added)
    held_back = [each for each in given if each.is_quarantined and each.id in new]
    jobs: dict[Outcome, list[str]] = {}
    for name, outcome in recorded.jobs:
        jobs.setdefault(outcome, []).append(name)
    return Receipt(
        recorded.added,
        ids=[each.id for each in given],
        held_back={each.id: str(each.details.get(SUSPICION, "")) for each in held_back},
        is_durable=is_durable,
        derived=jobs.get(Outcome.DONE, ()),
        pending=jobs.get(Outcome.LEFT, ()),
        failed=jobs.get(Outcome.FAILED, ()),
    )


def rounded(score: float) -> float:
    """Return a score as far as it tells two apart."""
    return float(f"{score:.{_EQUAL}g}")
