"""Erasure: deletes memories with their old versions, their jobs and everything derived from them.

Derived memories are deleted first and looked for again at the end. A deriver that reads a memory
while it is deleted either finds it deleted and drops its result, or its result is found here. Every
step can be repeated with the same ids, so the next call completes a deletion that was interrupted.

The id of a message is unique within its session; the id of a derived memory is unique for the user.
A derived memory records which of its sources are in its own session (``source_versions``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager

from msgspec import Struct
from msgspec.structs import replace as change

from ...errors import UnknownMemory
from ...record import ARCHIVED, MAX_MARKS, MESSAGE, SUMMARY, Record, Scope, Where
from ...store import KeepsVectors, Remainder, Store, TellsRemains
from ...store.erasures import What, noted
from ...store.remains import UNKNOWN
from ..deriving.jobs import Jobs, StoredJob, without_memories
from ..deriving.task.lessons import session_of_runs, without_runs
from ..review.lineage import settle
from ..review.rejections import narrowed, rejection_of, without_memory
from ..search import Searcher
from ..values.envelope import derived_mark, details_of, record_of, sources_of
from ..values.kinds import (
    ANSWER,
    DERIVED,
    JOB,
    NO_MEMORIES,
    NOTE,
    OUTBOX,
    RECALL,
    REGISTRY,
    REJECTION,
    SOURCE_VERSIONS,
    SUPERSEDED,
    SUPERSEDED_BY,
    VERSION,
)
from ..values.memory import RAW, MemoryItem
from ..values.results import Deleted, Erasure
from .repository import MemoryRepository, version_at
from .superseding import holding


class DerivedKinds:
    """The kinds of derived memories in a store, including those of other services' derivers."""

    def __init__(self, store: Store, own: Sequence[str] = ()) -> None:
        self._store = store
        self._own = tuple(dict.fromkeys((*DERIVED, *own)))

    async def announce(self) -> None:
        """Record the kinds of custom derivers in the store."""
        new = [kind for kind in self._own if kind not in DERIVED]
        if new:
            now = self._store.clock()
            records = [Record(kind, {}, "", kind=NOTE, created_at=now) for kind in new]
            await self._store.append(REGISTRY, records)

    async def all(self) -> tuple[str, ...]:
        """Return every kind that a service has announced on this store."""
        announced = [each.id for each in await self._store.select(REGISTRY)]
        return tuple(dict.fromkeys((*self._own, *announced)))


class _Tally(Struct):
    """What a deletion has removed so far."""

    raw: list[str] = []
    derived: list[Record] = []
    versions: int = 0

    def deleted(self) -> Deleted:
        derived = dict.fromkeys(each.id for each in self.derived)
        return Deleted(tuple(dict.fromkeys(self.raw)), tuple(derived), self.versions)


class Eraser:
    """Deletes memories from a store, with all their traces."""

    def __init__(
        self, repository: MemoryRepository, searcher: Searcher, kinds: DerivedKinds
    ) -> None:
        self._repository = repository
        self._store = repository.store
        self._searcher = searcher
        self._kinds = kinds
        self._jobs = Jobs(repository.store)

    async def memories(self, scope: Scope, ids: Collection[str]) -> Deleted:
        """Delete memories by id."""
        async with self._noted("memories", scope, ids):
            return await self._memories(scope, ids)

    async def _memories(self, scope: Scope, ids: Collection[str]) -> Deleted:
        tally = _Tally()
        there = await self._store.select(scope, Where(ids=frozenset(ids)))
        made = [each for each in there if each.kind not in (RAW, *NO_MEMORIES)]
        said = set(ids).difference(each.id for each in made)
        await self._remember(scope.user, made)
        await self._remove_from_jobs(scope, said)
        await self._remove_derived(tally, scope, said)
        await self._remove(tally, scope.user, made)
        tally.versions += await self._repository.forget_versions(scope, sorted(said))
        tally.raw += await self._store.delete(scope, Where(ids=frozenset(said), kind=RAW))
        await self._remove_derived(tally, scope, said - await self._added_again(scope, said))
        tally.versions += await self._repository.forget_versions(scope, sorted(said))
        return await self._concluded(scope.user, tally, ids)

    async def session(self, scope: Scope) -> Deleted:
        """Delete a session, and what was derived from it in other sessions."""
        async with self._noted("session", scope):
            return await self._session(scope)

    async def _session(self, scope: Scope) -> Deleted:
        assert scope.session is not None  # None would delete everything
        tally = _Tally()
        said = {each.id for each in await self._store.select(scope, Where(kind=RAW))}
        await self._remove_derived(tally, scope, said)
        jobs = await self._store.delete(scope, Where(kind=JOB))
        if jobs:
            await self._jobs.forget_notes(scope.user, jobs)
        tally.raw += await self._store.delete(scope, Where(kind=RAW))
        for kind in await self._kinds.all():
            there = await self._store.select(scope, Where(kind=kind))
            left = [each for each in there if not await self._is_moved(scope, each)]
            await self._remove(tally, scope.user, left)
        await self._remove_derived(tally, scope, said - await self._added_again(scope, said))
        await self._store.delete(scope, Where(kind=REJECTION))
        tally.versions += len(await self._store.delete(scope, Where(kind=VERSION)))
        return await self._concluded(scope.user, tally, said)

    async def user(self, user: str) -> Deleted:
        """Delete all memories of a user, in the store and in the index."""
        async with self._noted("service", Scope(user)):
            return await self._user(user)

    async def _user(self, user: str) -> Deleted:
        scope = Scope(user)
        await self._store.delete(scope, Where(kind=JOB))
        raw = await self._store.delete(scope, Where(kind=RAW))
        derived: list[str] = []
        for kind in await self._kinds.all():
            derived += await self._store.delete(scope, Where(kind=kind))
        await self._store.delete(scope, Where(kind=REJECTION))
        versions = await self._store.delete(scope, Where(kind=VERSION))
        for kind in (RECALL, ANSWER):
            await self._store.delete(scope, Where(kind=kind))
        await self._store.delete(Scope(OUTBOX, user))
        await self._searcher.forget(user)
        await self._remains()  # also removes what can be removed at once
        return Deleted(tuple(raw), tuple(derived), len(versions))

    def _noted(
        self, what: What, scope: Scope, ids: Collection[str] = ()
    ) -> AbstractAsyncContextManager[None]:
        """Note an erasure in the store's ledger, so that a restored backup does not undo it."""
        store = self._store
        return noted(
            store.erasures, what, scope.user, store.clock, session=scope.session, memories=ids
        )

    async def verify(self, user: str) -> Erasure:
        """Return what is left of a user, not counting working memory in the same store."""
        scope = Scope(user)
        working = (MESSAGE, SUMMARY, ARCHIVED)
        own = (REJECTION, VERSION, JOB, RECALL, ANSWER)
        kinds = (RAW, *await self._kinds.all(), *own, *working)
        left = {kind: await self._store.count(scope, Where(kind=kind)) for kind in kinds}
        left["other"] = await self._store.count(scope) - sum(left.values())
        left[NOTE] = await self._store.count(Scope(OUTBOX, user))
        for kind in working:
            del left[kind]
        records = {kind: number for kind, number in left.items() if number > 0}
        await self._searcher.refresh(user)
        traces = await self._searcher.traces(user)
        return Erasure(user, records, traces, await self._vectors_of(user), await self._remains())

    async def _remains(self) -> tuple[Remainder, ...]:
        store = self._store
        return await store.remains() if isinstance(store, TellsRemains) else (UNKNOWN,)

    async def _vectors_of(self, user: str) -> int:
        if not isinstance(self._store, KeepsVectors):
            return 0
        return sum(kept.count for kept in (await self._store.vector_spaces(user)).values())

    async def outdated(self, scope: Scope, sources: Mapping[str, int]) -> list[Record]:
        """Return what was derived directly from earlier versions of these memories."""
        direct = await self._derived_directly(scope, set(sources))
        return [each for each in direct if _is_earlier(each, sources)]

    async def forget(self, user: str, derived: Sequence[Record]) -> None:
        """Delete derived memories and keep their sources.

        Rejections among them only lose the memory they hold.
        """
        tally = _Tally()
        for each in derived:
            if each.kind == REJECTION:
                await self._rewrite(user, each, without_memory(each))
        await self._remove(tally, user, [each for each in derived if each.kind != REJECTION])
        await self._restore(user, tally.derived)

    async def drop_orphans(
        self, scope: Scope, derived: Sequence[Record], is_meant: Callable[[Record], bool]
    ) -> None:
        """Delete what was derived from memories that were deleted or changed meanwhile.

        Facts that it had superseded hold again.
        """
        sources = frozenset(each for record in derived for each in sources_of(record))
        if not sources:
            return
        there = await self._store.select(Scope(scope.user), Where(ids=sources))
        intact = {each.id for each in there if is_meant(each)}
        intact |= {record.id for record in derived}
        orphans = [record.id for record in derived if not intact.issuperset(sources_of(record))]
        if orphans:
            where = Where(ids=frozenset(orphans))
            await self.forget(scope.user, await self._store.select(scope, where))

    async def undo(self, scope: Scope, never_added: Sequence[Record]) -> None:
        """Restore facts that were superseded by records which were then not added."""
        ids = frozenset(each.id for each in never_added)
        there = await self._store.select(scope, Where(ids=ids)) if ids else []
        await self._restore(scope.user, (), ids.difference(each.id for each in there))

    async def derived_from(self, scope: Scope, ids: Collection[str]) -> list[Record]:
        """Return what was derived, directly or not, from memories of a session or of the user."""
        found: dict[int, Record] = {}
        wanted, where = set(ids), scope
        while wanted:
            new = [
                each
                for each in await self._derived_directly(where, wanted)
                if each.seq not in found
            ]
            found.update((each.seq, each) for each in new)
            wanted, where = {each.id for each in new}, Scope(scope.user)
        return list(found.values())

    async def _derived_directly(self, scope: Scope, ids: set[str]) -> list[Record]:
        """Return what was derived directly from memories of a session or of the user."""
        found: dict[int, Record] = {}
        ordered = sorted(ids)
        for start in range(0, len(ordered), MAX_MARKS):
            marks = map(derived_mark, ordered[start : start + MAX_MARKS])
            for record in await self._store.select(
                Scope(scope.user), Where(marks=frozenset(marks))
            ):
                if not ids.isdisjoint(_sources_in(scope, record)):
                    found[record.seq] = record
        return list(found.values())

    async def _remove_derived(self, tally: _Tally, scope: Scope, ids: Collection[str]) -> None:
        """Delete what was derived from memories; rebuild what has other sources too."""
        derived = await self.derived_from(scope, ids)
        left = [each for each in derived if not await self._is_rebuilt(tally, scope, each, ids)]
        await self._remove(tally, scope.user, left)

    async def _is_rebuilt(
        self, tally: _Tally, scope: Scope, record: Record, ids: Collection[str]
    ) -> bool:
        """Rebuild a memory without its deleted sources and drop its versions, if possible."""
        lost = frozenset(_sources_in(scope, record)).intersection(ids)
        if record.kind == REJECTION:
            left = narrowed(record, lost)
            return left is not None and await self._rewrite(scope.user, record, left)
        there = Scope(scope.user, record.session)
        memory = await self._repository.find(there, record.id)
        if not lost or memory is None or without_runs(memory, lost) is None:
            return False
        await self._repository.edit(
            there, record.id, lambda seen: without_runs(seen, lost), keep=False
        )
        tally.versions += await self._repository.forget_versions(there, [record.id])
        found = await self._repository.find(there, record.id)
        return found is None or not lost.intersection(sources_of(found))

    async def _remove(self, tally: _Tally, user: str, derived: Sequence[Record]) -> None:
        """Delete derived memories with their versions and what was derived from them."""
        further = await self.derived_from(Scope(user), {each.id for each in derived})
        every = {each.seq: each for each in (*derived, *further)}
        ids = sorted({each.id for each in every.values()})
        if ids:
            removed, versions = await self._repository.remove(Scope(user), ids)
            gone = [each for each in every.values() if each.id in removed]
            tally.derived += [each for each in gone if each.kind != REJECTION]
            tally.versions += versions

    async def _rewrite(self, user: str, record: Record, new: Record) -> bool:
        """Replace a record, unless it was changed meanwhile; return ``True``."""
        where = version_at(record.id, record.seq)
        await self._store.replace(Scope(user, record.session), where, [new], if_found=True)
        return True

    async def _remember(self, user: str, derived: Iterable[Record]) -> None:
        """Store what is deleted as rejected, so that it is not derived again."""
        for memory in self._repository.read(user, derived):
            rejection = rejection_of(memory, self._repository.now(), is_kept=False)
            if rejection is not None:
                await self._store.append(Scope(user, memory.session_id), [rejection])

    async def _is_moved(self, scope: Scope, record: Record) -> bool:
        """Move a memory with sources in other sessions to one of those, if it has any."""
        memory = await self._repository.find(scope, record.id)
        session = None if memory is None else session_of_runs(memory)
        if memory is None or session is None or session == scope.session:
            return False
        details = {**memory.details, SOURCE_VERSIONS: {}}
        moved = change(memory, session_id=session, details=details)
        await self._store.append(Scope(scope.user, session), [record_of(moved)])
        await self._store.delete(scope, Where(ids=frozenset({record.id}), kind=record.kind))
        return True

    async def _added_again(self, scope: Scope, ids: Collection[str]) -> set[str]:
        """Return which of the deleted ids were added again since: those are new memories."""
        there = await self._store.select(scope, Where(ids=frozenset(ids), kind=RAW))
        return {each.id for each in there}

    async def _remove_from_jobs(self, scope: Scope, ids: Collection[str]) -> None:
        """Remove memories from pending jobs, whose stored decisions may quote them."""
        for job in await self._jobs.of(scope):
            stored: StoredJob | None = job
            while stored is not None and not stored.state.memories.keys().isdisjoint(ids):
                left = without_memories(stored.state, ids)
                done = (
                    await self._jobs.revise(stored, left) is not None
                    if left.memories
                    else await self._jobs.finish(stored, [])
                )
                stored = None if done else await self._jobs.find(stored.scope, stored.id)

    async def _concluded(self, user: str, tally: _Tally, asked: Iterable[str]) -> Deleted:
        await self._restore(user, tally.derived, asked)
        await self._searcher.refresh(user)
        return tally.deleted()

    async def _restore(
        self, user: str, deleted: Sequence[Record], asked: Iterable[str] = ()
    ) -> None:
        """Restore memories that were superseded by deleted ones.

        If the deleted memory was itself superseded, its successor takes its place.
        """
        successors: dict[str, str | None] = dict.fromkeys(asked)
        successors.update((each.id, _superseded_by(each)) for each in deleted)
        if not successors:
            return
        where = Where(marks=frozenset({SUPERSEDED}))
        restored = []
        for memory in await self._repository.select(Scope(user), where):
            if memory.details.get(SUPERSEDED_BY) in successors:
                scope = Scope(user, memory.session_id)
                try:
                    await self._repository.edit(
                        scope, memory.id, lambda seen: _restored(seen, successors)
                    )
                except UnknownMemory:
                    continue
                restored.append(memory.id)
        if restored:  # another approved memory may supersede one
            await settle(self._repository, user, (), restored)


def _restored(memory: MemoryItem, successors: Mapping[str, str | None]) -> MemoryItem | None:
    """Return a superseded memory without its deleted successors; ``None`` if unchanged."""
    by: str | None = memory.details.get(SUPERSEDED_BY)
    if SUPERSEDED not in memory.marks or by not in successors:
        return None
    while by is not None and by in successors:
        by = successors[by]
    if by is not None:
        return change(memory, details={**memory.details, SUPERSEDED_BY: by})
    return holding(memory)


def is_source(record: Record, session: str | None, own: Collection[str]) -> bool:
    """Return whether a memory in ``session`` has this record as its source.

    Another session may have a record with the same id. ``own`` are the ids of the memory's sources
    in its own session.
    """
    return record.kind != RAW or record.session == session or record.id not in own


def own_sources(record: Record) -> Mapping[str, int]:
    """Return the sources of a record in its own session, with their versions."""
    versions = details_of(record).get(SOURCE_VERSIONS)
    return versions if isinstance(versions, dict) else {}


def _sources_in(scope: Scope, record: Record) -> list[str]:
    """Return the sources of a record that may be in the scope's session, if it has one."""
    if scope.session in (None, record.session):
        return list(sources_of(record))
    own = own_sources(record)
    return [each for each in sources_of(record) if each not in own]


def _is_earlier(record: Record, versions: Mapping[str, int]) -> bool:
    """Return whether a record was derived from an earlier version of one of these memories."""
    known = own_sources(record)
    return any(
        known.get(each, 0) < versions[each] for each in sources_of(record) if each in versions
    )


def _superseded_by(record: Record) -> str | None:
    by = details_of(record).get(SUPERSEDED_BY)
    return by if isinstance(by, str) else None
