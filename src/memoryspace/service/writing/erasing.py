"""Erasing: what is deleted takes with it what was derived from it, its old versions, its jobs.

What was derived goes first and is looked for once more at the end: whoever derives from a memory
while it is deleted either finds it gone (and drops what it made), or is found here. Every step can
be repeated by the ids that were asked for, so a deletion that broke off is completed by the next.

A raw memory's id is its own within its session; an id that was derived is its own everywhere. What
is derived says which of its sources stand in its own session (``source_versions``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace as change

from ...errors import UnknownMemory
from ...record import MAX_MARKS, MESSAGE, SUMMARY, Record, Scope, Where
from ...store import KeepsVectors, Remainder, Store, TellsRemains
from ...store.remains import UNKNOWN
from ..deriving.jobs import Jobs, Stored, without
from ..deriving.task.lessons import session_of_runs, without_runs
from ..search import Searcher
from ..values.envelope import derived_mark, details_of, record_of
from ..values.kinds import (
    DERIVED,
    JOB,
    NO_MEMORIES,
    NOTE,
    OUTBOX,
    REGISTRY,
    SUPERSEDED,
    SUPERSEDED_BY,
    VERSION,
)
from ..values.memory import RAW, MemoryItem
from ..values.results import Deleted, Erasure
from .repository import MemoryRepository

# Among the details of what no longer holds, beside what does: until when it would have.
SOURCE_VERSIONS = "source_versions"  # the details that say from which versions something comes
HELD_UNTIL = "held_until"  # it was known to hold before that


class DerivedKinds:
    """The kinds of memories that derivers make: whoever erases must know all, also others'."""

    def __init__(self, store: Store, own: Sequence[str] = ()) -> None:
        self._store = store
        self._own = tuple(dict.fromkeys((*DERIVED, *own)))

    async def announce(self) -> None:
        """Write down the kinds that are not ours from the start."""
        new = [kind for kind in self._own if kind not in DERIVED]
        if new:
            now = self._store.clock()
            records = [Record(kind, {}, "", kind=NOTE, created_at=now) for kind in new]
            await self._store.append(REGISTRY, records)

    async def all(self) -> tuple[str, ...]:
        """Return every kind that anybody has announced on this store."""
        announced = [each.id for each in await self._store.select(REGISTRY)]
        return tuple(dict.fromkeys((*self._own, *announced)))


class _Gone(Struct):
    """What a deletion has removed so far."""

    raw: list[str] = []
    derived: list[Record] = []
    versions: int = 0

    def told(self) -> Deleted:
        derived = dict.fromkeys(each.id for each in self.derived)
        return Deleted(tuple(dict.fromkeys(self.raw)), tuple(derived), self.versions)


class Eraser:
    """Deletes memories of a store, wherever they have left something."""

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
        gone = _Gone()
        there = await self._store.select(scope, Where(ids=frozenset(ids)))
        made = [each for each in there if each.kind not in (RAW, *NO_MEMORIES)]
        said = set(ids).difference(each.id for each in made)
        await self._take_from_jobs(scope, said)
        await self._remove_derived(gone, scope, said)
        await self._remove(gone, scope.user, made)
        gone.versions += await self._repository.forget_versions(scope, sorted(said))
        gone.raw += await self._store.delete(scope, Where(ids=frozenset(said), kind=RAW))
        await self._remove_derived(gone, scope, said - await self._said_again(scope, said))
        gone.versions += await self._repository.forget_versions(scope, sorted(said))
        return await self._concluded(scope.user, gone, ids)

    async def session(self, scope: Scope) -> Deleted:
        """Delete a session, and what was derived from it elsewhere."""
        assert scope.session is not None  # without one it would be everything
        gone = _Gone()
        said = {each.id for each in await self._store.select(scope, Where(kind=RAW))}
        await self._remove_derived(gone, scope, said)
        jobs = await self._store.delete(scope, Where(kind=JOB))
        if jobs:
            await self._jobs.forget_notes(scope.user, jobs)
        gone.raw += await self._store.delete(scope, Where(kind=RAW))
        for kind in await self._kinds.all():
            there = await self._store.select(scope, Where(kind=kind))
            left = [each for each in there if not await self._is_moved(scope, each)]
            await self._remove(gone, scope.user, left)
        await self._remove_derived(gone, scope, said - await self._said_again(scope, said))
        gone.versions += len(await self._store.delete(scope, Where(kind=VERSION)))
        return await self._concluded(scope.user, gone, said)

    async def user(self, user: str) -> Deleted:
        """Delete all memories of a user, in the store and in the index."""
        scope = Scope(user)
        await self._store.delete(scope, Where(kind=JOB))
        raw = await self._store.delete(scope, Where(kind=RAW))
        derived: list[str] = []
        for kind in await self._kinds.all():
            derived += await self._store.delete(scope, Where(kind=kind))
        versions = await self._store.delete(scope, Where(kind=VERSION))
        await self._store.delete(Scope(OUTBOX, user))
        await self._searcher.forget(user)
        await self._remains()  # which removes what can be removed at once
        return Deleted(tuple(raw), tuple(derived), len(versions))

    async def verify(self, user: str) -> Erasure:
        """Count what is left of a user; working memory on the same store is not ours to count."""
        scope = Scope(user)
        kinds = (RAW, *await self._kinds.all(), VERSION, JOB, MESSAGE, SUMMARY)
        left = {kind: await self._store.count(scope, Where(kind=kind)) for kind in kinds}
        left["other"] = await self._store.count(scope) - sum(left.values())
        left[NOTE] = await self._store.count(Scope(OUTBOX, user))
        del left[MESSAGE], left[SUMMARY]
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
        direct = await self._made_from(scope, set(sources))
        return [each for each in direct if _is_earlier(each, sources)]

    async def forget(self, user: str, derived: Sequence[Record]) -> None:
        """Delete what was derived, while what it comes from stays."""
        gone = _Gone()
        await self._remove(gone, user, derived)
        await self._revive(user, gone.derived)

    async def drop_orphans(
        self, scope: Scope, derived: Sequence[Record], is_meant: Callable[[Record], bool]
    ) -> None:
        """Delete what was derived from memories that were deleted, or changed, meanwhile.

        What it had put an end to holds again.
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
        """Let hold again what was superseded by something that was then not added after all."""
        ids = frozenset(each.id for each in never_added)
        there = await self._store.select(scope, Where(ids=ids)) if ids else []
        await self._revive(scope.user, (), ids.difference(each.id for each in there))

    async def derived_from(self, scope: Scope, ids: Collection[str]) -> list[Record]:
        """Return what was derived from memories of a session, or of all; directly or not."""
        found: dict[int, Record] = {}
        wanted, where = set(ids), scope
        while wanted:
            new = [each for each in await self._made_from(where, wanted) if each.seq not in found]
            found.update((each.seq, each) for each in new)
            wanted, where = {each.id for each in new}, Scope(scope.user)
        return list(found.values())

    async def _made_from(self, scope: Scope, ids: set[str]) -> list[Record]:
        """Return what was derived directly from memories of a session, or of all."""
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

    async def _remove_derived(self, gone: _Gone, scope: Scope, ids: Collection[str]) -> None:
        """Delete what was derived from memories; what has other sources too is made of those."""
        derived = await self.derived_from(scope, ids)
        left = [each for each in derived if not await self._is_rebuilt(gone, scope, each, ids)]
        await self._remove(gone, scope.user, left)

    async def _is_rebuilt(
        self, gone: _Gone, scope: Scope, record: Record, ids: Collection[str]
    ) -> bool:
        """Make something without some of its sources, if it can be, and forget what it was."""
        lost = frozenset(_sources_in(scope, record)).intersection(ids)
        there = Scope(scope.user, record.session)
        memory = await self._repository.find(there, record.id)
        if not lost or memory is None or without_runs(memory, lost) is None:
            return False
        await self._repository.edit(
            there, record.id, lambda seen: without_runs(seen, lost), keep=False
        )
        gone.versions += await self._repository.forget_versions(there, [record.id])
        found = await self._repository.find(there, record.id)
        return found is None or not lost.intersection(_named(found))

    async def _remove(self, gone: _Gone, user: str, derived: Sequence[Record]) -> None:
        """Delete derived memories with their versions, and with what was derived from them."""
        further = await self.derived_from(Scope(user), {each.id for each in derived})
        every = {each.seq: each for each in (*derived, *further)}
        ids = sorted({each.id for each in every.values()})
        if ids:
            removed, versions = await self._repository.remove(Scope(user), ids)
            gone.derived += [each for each in every.values() if each.id in removed]
            gone.versions += versions

    async def _is_moved(self, scope: Scope, record: Record) -> bool:
        """Let what comes from other sessions too stand in one of those."""
        memory = await self._repository.find(scope, record.id)
        session = None if memory is None else session_of_runs(memory)
        if memory is None or session is None or session == scope.session:
            return False
        details = {**memory.details, SOURCE_VERSIONS: {}}
        moved = change(memory, session_id=session, details=details)
        await self._store.append(Scope(scope.user, session), [record_of(moved)])
        await self._store.delete(scope, Where(ids=frozenset({record.id}), kind=record.kind))
        return True

    async def _said_again(self, scope: Scope, ids: Collection[str]) -> set[str]:
        """Return which of the deleted ids somebody has used again since: those are others."""
        there = await self._store.select(scope, Where(ids=frozenset(ids), kind=RAW))
        return {each.id for each in there}

    async def _take_from_jobs(self, scope: Scope, ids: Collection[str]) -> None:
        """Let no job think of these any more: its decisions may hold their words."""
        for job in await self._jobs.of(scope):
            stored: Stored | None = job
            while stored is not None and not stored.task.memories.keys().isdisjoint(ids):
                left = without(stored.task, ids)
                done = (
                    await self._jobs.revise(stored, left) is not None
                    if left.memories
                    else await self._jobs.finish(stored, [])
                )
                stored = None if done else await self._jobs.find(stored.scope, stored.id)

    async def _concluded(self, user: str, gone: _Gone, asked: Iterable[str]) -> Deleted:
        await self._revive(user, gone.derived, asked)
        await self._searcher.refresh(user)
        return gone.told()

    async def _revive(self, user: str, gone: Sequence[Record], asked: Iterable[str] = ()) -> None:
        """What was superseded by something that is deleted holds again, or something else does.

        If the deleted one was itself superseded, what took its place stands in for it.
        """
        heirs: dict[str, str | None] = dict.fromkeys(asked)
        heirs.update((each.id, _superseded_by(each)) for each in gone)
        if not heirs:
            return
        where = Where(marks=frozenset({SUPERSEDED}))
        for memory in await self._repository.select(Scope(user), where):
            if memory.details.get(SUPERSEDED_BY) in heirs:
                scope = Scope(user, memory.session_id)
                try:
                    await self._repository.edit(scope, memory.id, lambda seen: _freed(seen, heirs))
                except UnknownMemory:
                    continue


def _freed(memory: MemoryItem, heirs: Mapping[str, str | None]) -> MemoryItem | None:
    """Return a superseded memory as it is when those who are gone count no more."""
    by: str | None = memory.details.get(SUPERSEDED_BY)
    if SUPERSEDED not in memory.marks or by not in heirs:
        return None
    while by is not None and by in heirs:
        by = heirs[by]
    if by is not None:
        return change(memory, details={**memory.details, SUPERSEDED_BY: by})
    details = {key: value for key, value in memory.details.items() if key != SUPERSEDED_BY}
    until = details.pop(HELD_UNTIL, None)
    return change(memory, marks=memory.marks - {SUPERSEDED}, valid_to=until, details=details)


def is_source(record: Record, session: str | None, own: Collection[str]) -> bool:
    """Tell whether what stands in a session comes from a record, and not from one of the same id.

    ``own`` are the ids of its sources in that session.
    """
    return record.kind != RAW or record.session == session or record.id not in own


def own_sources(record: Record) -> Mapping[str, int]:
    """Return the sources of a record that stand in its own session, with their versions."""
    versions = details_of(record).get(SOURCE_VERSIONS)
    return versions if isinstance(versions, dict) else {}


def _sources_in(scope: Scope, record: Record) -> list[str]:
    """Return those sources of a record that may be memories of a session; of all, if none is."""
    if scope.session in (None, record.session):
        return list(sources_of(record))
    own = own_sources(record)
    return [each for each in sources_of(record) if each not in own]


def sources_of(record: Record) -> tuple[str, ...]:
    """Return the ids of what a record was derived from."""
    return () if record.origin is None else record.origin.derived_from


def _is_earlier(record: Record, versions: Mapping[str, int]) -> bool:
    """Tell whether a record comes from an earlier version of one of these memories."""
    known = own_sources(record)
    return any(
        known.get(each, 0) < versions[each] for each in sources_of(record) if each in versions
    )


def _named(memory: MemoryItem) -> tuple[str, ...]:
    return () if memory.origin is None else memory.origin.derived_from


def _superseded_by(record: Record) -> str | None:
    by = details_of(record).get(SUPERSEDED_BY)
    return by if isinstance(by, str) else None
