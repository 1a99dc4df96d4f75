"""Checks of what is in a store: records, derivation jobs, kept vectors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

from ..embedding import Embedder
from ..errors import CorruptData
from ..events import Event
from ..record import Scope, Where
from ..service.deriving.jobs import Jobs, StoredJob
from ..service.search.keeping import RecordText, VectorKeeper, space_of, texts_of
from ..service.values.envelope import entry_of
from ..store import KeepsVectors, SpaceStore, Store
from ..store.space.damage import damaged_in
from .findings import Finding, few, ok
from .manifest import Progress
from .replaying import users_of

AT_ONCE = 500  # records read in one call
_STUCK = 3600.0  # seconds


async def examine_records(store: Store, tell: Progress) -> AsyncIterator[Finding]:
    """Read every record; every invariant of a space is verified too."""
    if isinstance(store, SpaceStore):
        yield await asyncio.to_thread(_invariants, store)
        damaged = await asyncio.to_thread(lambda: list(damaged_in(store.space)))
        unreadable = [(each.user, each.id) for each in damaged]
    else:
        unreadable = []
    heard: list[tuple[str, str]] = []

    def listen(event: Event) -> None:
        heard.append((event.data["scope"].user, event.data["id"]))

    stop = store.events.subscribe(listen, "record_corrupt")
    users = records = 0
    try:
        async for user in users_of(store):
            users += 1
            async for page in _pages(store, user):
                records += len(page)
                tell("records", records, 0)
    finally:
        stop()
    unreadable = unreadable or list(dict.fromkeys(heard))
    if unreadable:
        names = few(f"{name} of {user}" for user, name in unreadable)
        can_free = isinstance(store, SpaceStore) and records > 0  # else these may be other things
        yield Finding(
            "problem",
            "records",
            f"{len(unreadable)} cannot be read: {names}",
            "restore a backup to have them back",
            "quarantine" if can_free else None,
        )
    yield ok("records", f"{records} of {users} users read")


def _invariants(store: SpaceStore) -> Finding:
    try:
        store.space.check()
    except (AssertionError, CorruptData) as error:
        what = f"an invariant does not hold: {error}"
        return Finding("problem", "space", what, "back up, restore the backup, and report this")
    figures = store.space.stats()
    return ok("space", f"every invariant holds over {figures['objects']} objects")


async def _pages(store: Store, user: str) -> AsyncIterator[list[Any]]:
    last = 0  # every seq is above 0
    while page := await store.select(Scope(user), Where(after=last, limit=AT_ONCE)):
        yield page
        last = page[-1].seq


# -- derivation ------------------------------------------------------------------------------------


async def examine_jobs(store: Store) -> AsyncIterator[Finding]:
    """Find derivation jobs that failed, and those that have waited for long."""
    failed, stuck, waiting = [], [], 0
    async for user, job, created in jobs_in(store):
        if job.state.is_given_up:
            failed.append(f"{user}: {job.state.error or 'no reason is known'}")
        elif store.clock() - created > _STUCK:
            stuck.append(user)
        else:
            waiting += 1
    if failed:
        yield Finding(
            "warning", "derivation", f"{len(failed)} jobs were given up ({few(failed, 3)})",
            "see the reasons, then retry them", "retry",
        )  # fmt: skip
    if stuck:
        yield Finding(
            "warning", "derivation",
            f"{len(stuck)} jobs have waited for more than an hour, of {few(dict.fromkeys(stuck))}",
            "start a service with the derivers that made them: it resumes them",
        )  # fmt: skip
    if not failed and not stuck:
        yield ok("derivation", f"no job has failed, {waiting} wait")


async def jobs_in(store: Store) -> AsyncIterator[tuple[str, StoredJob, float]]:
    """Yield every job with its user, and when it was written."""
    jobs = Jobs(store)
    for user in await jobs.users():
        for job in await jobs.of(Scope(user)):
            written = await store.select(job.scope, Where(ids=frozenset({job.id})))
            yield user, job, written[-1].created_at if written else store.clock()


# -- vectors ---------------------------------------------------------------------------------------


async def examine_vectors(store: Store, embedder: Embedder | None) -> AsyncIterator[Finding]:
    """Compare the kept vectors with an embedder: its name, their length, how many are missing."""
    if not isinstance(store, KeepsVectors):
        yield ok("vectors", "this store keeps none")
        return
    kept: dict[str, int] = {}
    wanted = missing = 0
    keeper = None if embedder is None else VectorKeeper(store, embedder)
    async for user in users_of(store):
        for space, there in (await store.vector_spaces(user)).items():
            kept[space] = kept.get(space, 0) + there.count
        if keeper is not None:
            async for texts in texts_in(store, user):
                known = await keeper.known(user, texts)
                absent = keeper.missing(texts, known)
                missing += len(absent)
                wanted += len(absent) + len(known.seqs)
    for each in _about_vectors(kept, embedder, wanted, missing):
        yield each


def _about_vectors(
    kept: dict[str, int], embedder: Embedder | None, wanted: int, missing: int
) -> Iterator[Finding]:
    own = None if embedder is None else space_of(embedder)
    for space, count in kept.items():
        if space != own and embedder is not None:
            yield Finding(
                "warning", "vectors", f"{count} are of another embedder, {space}",
                "a service with former_embedder= uses them until yours has embedded everything",
            )  # fmt: skip
    if embedder is None:
        yield ok("vectors", f"{sum(kept.values())} kept; no embedder to compare them with")
    elif missing:
        yield Finding(
            "warning", "vectors",
            f"{missing} of {wanted} are missing, damaged or of another text for {embedder.name}",
            "they are made on the next search; or make them now", "embed",
        )  # fmt: skip
    else:
        yield ok("vectors", f"all {wanted} are there, by {embedder.name}")


async def texts_in(store: Store, user: str) -> AsyncIterator[list[RecordText]]:
    """Yield what of a user's records is embedded, page by page."""
    async for page in _pages(store, user):
        yield texts_of(page, entry_of)
