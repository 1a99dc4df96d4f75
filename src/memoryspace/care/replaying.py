"""Erase again in a restored copy what was erased after the moment it stands for."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from ..record import EVERYTHING, RESERVED_PREFIX, Scope
from ..service.settings import ServiceSettings
from ..service.stored import StoredMemoryService
from ..store import ErasureLedger, Store
from ..store.contract import session_in
from ..store.erasures import COPIES, Erased, hashed

_WHOLE = ("user", "service")  # erasures of a user as a whole


class Replayed(NamedTuple):
    """How many users, and how many memories of other users, were erased again."""

    users: int = 0
    memories: int = 0


class KnownErasures(NamedTuple):
    """Erasures of one ledger by the hash of their user, with the key of its hashes."""

    key: str
    by_user: dict[str, list[Erased]]

    def of(self, user: str) -> list[Erased]:
        """Return what was erased of a user."""
        return self.by_user.get(hashed(self.key, user), [])


def ledgers_beside(backup: Path) -> list[ErasureLedger]:
    """Return the ledgers that are kept beside some backups."""
    return [ErasureLedger(path) for path in sorted((backup / COPIES).glob("*.log"))]


def erasures_after(
    ledger: ErasureLedger, moment: float, *, only_users: bool = False
) -> KnownErasures:
    """Return what was erased after a moment; ``CorruptData`` if the ledger cannot be read."""
    by_user: dict[str, list[Erased]] = {}
    for erased in ledger.erasures():
        if erased.is_after(moment) and not (only_users and erased.what not in _WHOLE):
            by_user.setdefault(erased.user, []).append(erased)
    return KnownErasures(ledger.key, by_user)


async def replay_erasures(
    store: Store,
    ledgers: Iterable[ErasureLedger],
    *,
    since: float,
    users: Collection[str] = (),
    only_users: bool = False,
) -> Replayed:
    """Erase again from a restored store what was erased after the moment that it stands for.

    ``restore_backup`` does this by itself. Call it after restoring a dump of a database.

    Args:
        store: The restored store.
        ledgers: Where the erasures were noted.
        since: The moment that the store stands for, in seconds since the epoch.
        users: Users to erase besides.
        only_users: Erase users again, but not single memories and sessions.

    Returns:
        How much was erased.

    Raises:
        CorruptData: A ledger cannot be read.
    """
    known = [erasures_after(each, since, only_users=only_users) for each in ledgers]
    if not users and not any(each.by_user for each in known):
        return Replayed()
    noting, store.erasures = store.erasures, None  # what is repeated is known already
    try:
        async with StoredMemoryService(store, settings=ServiceSettings(embedder=None)) as service:
            return await _replay(service, known, users)
    finally:
        store.erasures = noting


async def _replay(
    service: StoredMemoryService, known: Sequence[KnownErasures], users: Collection[str]
) -> Replayed:
    gone, memories = 0, 0
    async for user in users_of(service.store):
        found = [(each.key, erased) for each in known for erased in each.of(user)]
        if user in users or any(erased.what == "user" for _, erased in found):
            gone += await _erase_user(service, user)
        elif any(erased.what == "service" for _, erased in found):
            gone += bool((await service.delete_memory(user)).ids)
        elif found:
            memories += await _erase_some(service, user, found)
    return Replayed(gone, memories)


async def users_of(store: Store) -> AsyncIterator[str]:
    """Yield the users of a store, without those of its own."""
    cursor = None
    while True:
        page = await store.users(cursor=cursor)
        for user in page.users:
            if not user.startswith(RESERVED_PREFIX):
                yield user
        if page.cursor is None:
            return
        cursor = page.cursor


async def _erase_user(service: StoredMemoryService, user: str) -> int:
    """Erase everything of a user, in the service and beside it; return whether there was any."""
    deleted = await service.delete_memory(user)
    others = await service.store.delete(Scope(user), EVERYTHING)
    return int(bool(deleted.ids or others))


async def _erase_some(
    service: StoredMemoryService, user: str, erasures: Sequence[tuple[str, Erased]]
) -> int:
    """Erase sessions, or some memories, of a user who stays."""
    ids_by_session: dict[str, set[str]] = {}
    for record in await service.store.select(Scope(user)):
        session = session_in(record)
        if not session.startswith(RESERVED_PREFIX):
            ids_by_session.setdefault(session, set()).add(record.id)
    total = 0
    for session, ids in sorted(ids_by_session.items()):
        here = [each for each in erasures if _is_about(session, user, *each)]
        kinds = {erased.what for _, erased in here}
        if kinds & {"session", "conversation"}:
            total += len((await service.delete_memory(user, session)).ids)
            if "conversation" in kinds:
                await service.store.delete(Scope(user, session))
            continue
        wanted = {
            name
            for name in ids
            if any(hashed(key, user, name) in erased.memories for key, erased in here)
        }
        if wanted:
            total += len((await service.delete(user, sorted(wanted), session_id=session)).ids)
    return total


def _is_about(session: str, user: str, key: str, erased: Erased) -> bool:
    return erased.session is None or erased.session == hashed(key, user, session)
