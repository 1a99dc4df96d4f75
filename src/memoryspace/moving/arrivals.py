"""Records on their way into a store.

A record whose id is known in its session is left as it is there, so a move that was interrupted is
completed by repeating it. Records are appended in their order; each run of records of one session
takes one step of the store.

Pending jobs are imported with the note that lets a starting service find them; the note comes
first, as when a job is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from msgspec import Struct

from ..record import Record, Scope, Where
from ..service.values.kinds import DERIVED, JOB, NOTE, OUTBOX, REGISTRY
from ..store import KeepsVectors, Store
from ..store.vectors import place_of
from .reports import ImportReport

Vectors = Mapping[str, bytes]  # by space


class Arrival(Struct, frozen=True):
    """A record of a user, with its vectors.

    ``is_late`` says that it was written while the export ran, so an earlier version of it may have
    been exported before.
    """

    user: str
    record: Record
    vectors: Vectors = {}
    is_late: bool = False


class Arrivals:
    """Adds records to a store and counts what becomes of them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._now = store.clock()
        self._users: set[str] = set()
        self._pending: dict[str, None] = {}
        self._added = self._expired = self._replaced = self._vectors = self.records = 0

    async def register(self, kinds: Iterable[str]) -> None:
        """Announce the kinds of custom derivers, so that an erasure finds what they derived."""
        notes = [Record(kind, {}, "", kind=NOTE, created_at=self._now) for kind in kinds]
        if notes:
            await self._store.append(REGISTRY, notes)

    def meet(self, user: str) -> None:
        """Count a user."""
        self._users.add(user)

    async def take(self, batch: Sequence[Arrival]) -> None:
        """Add some records, in their order."""
        self.records += len(batch)
        for scope, run in _runs(batch):
            living = [each for each in run if not self._is_expired(each.record)]
            self._expired += len(run) - len(living)
            for is_late, some in groupby(living, key=_is_late):
                await self._add(scope, list(some), is_late=is_late)

    def report(self, *, skipped: int = 0, damage: str | None = None) -> ImportReport:
        """Return what became of the records so far."""
        known = self.records - self._added - self._expired - self._replaced
        return ImportReport(
            users=len(self._users),
            records=self.records,
            added=self._added,
            known=known,
            expired=self._expired,
            replaced=self._replaced,
            vectors=self._vectors,
            skipped=skipped,
            pending=tuple(self._pending),
            damage=damage,
        )

    async def _add(self, scope: Scope, run: Sequence[Arrival], *, is_late: bool) -> None:
        there = await self._there(scope, run) if is_late or _needs_look(run) else {}
        new = [each.record for each in run if each.record.id not in there]
        await self._announce_jobs(scope.user, new)
        if new:
            self._added += len(await self._store.append(scope, new))
        for each in run:
            known = there.get(each.record.id)
            if is_late and known is not None and _is_newer(each.record, known):
                await self._replace(scope, known, each.record)
        if any(each.vectors for each in run):
            await self._put_vectors(scope, run)

    async def _there(self, scope: Scope, run: Sequence[Arrival]) -> dict[str, Record]:
        ids = frozenset(each.record.id for each in run)
        return {each.id: each for each in await self._store.select(scope, Where(ids=ids))}

    async def _announce_jobs(self, user: str, records: Sequence[Record]) -> None:
        jobs = [each for each in records if each.kind == JOB]
        if jobs:
            notes = [Record(each.id, {}, "", kind=NOTE, created_at=self._now) for each in jobs]
            await self._store.append(Scope(OUTBOX, user), notes)
            self._pending[user] = None

    async def _replace(self, scope: Scope, known: Record, new: Record) -> None:
        here = Where(ids=frozenset({known.id}), after=known.seq - 1, before=known.seq + 1)
        self._replaced += len(await self._store.replace(scope, here, [new], if_found=True))

    async def _put_vectors(self, scope: Scope, run: Sequence[Arrival]) -> None:
        if not isinstance(self._store, KeepsVectors):
            return
        there = await self._there(scope, [each for each in run if each.vectors])
        spaces: dict[str, dict[object, bytes]] = {}
        for each in run:
            stored = there.get(each.record.id)
            if stored is not None and stored.text == each.record.text:  # of the same version
                for space, vector in each.vectors.items():
                    spaces.setdefault(space, {})[place_of(stored)] = vector
        for space, vectors in spaces.items():
            self._vectors += await self._store.put_vectors(scope.user, space, vectors)  # type: ignore[arg-type]

    def _is_expired(self, record: Record) -> bool:
        return record.expires_at is not None and record.expires_at <= self._now


async def registered_kinds(store: Store) -> list[str]:
    """Return the kinds of custom derivers that are announced in a store."""
    return [each.id for each in await store.select(REGISTRY) if each.id not in DERIVED]


def _runs(batch: Sequence[Arrival]) -> Iterator[tuple[Scope, list[Arrival]]]:
    for (user, session), run in groupby(batch, key=_owner):
        yield Scope(user, session), list(run)


def _owner(arrival: Arrival) -> tuple[str, str | None]:
    return arrival.user, arrival.record.session


def _is_late(arrival: Arrival) -> bool:
    return arrival.is_late


def _needs_look(run: Sequence[Arrival]) -> bool:
    """Whether to look what is there first: a store merges the marks of a known record."""
    return any(each.record.marks for each in run)


def _is_newer(record: Record, known: Record) -> bool:
    return _age(record) > _age(known)


def _age(record: Record) -> tuple[float, float]:
    held = record.value if isinstance(record.value, dict) else {}
    version, updated = held.get("version", 1), held.get("updated_at", record.created_at)
    return (version if isinstance(version, int) else 1, updated if _is_real(updated) else 0.0)


def _is_real(value: object) -> bool:
    return isinstance(value, int | float)
