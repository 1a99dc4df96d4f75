"""Records on their way out of a store: a user's records page by page, in the store's order.

Pages are limited by their size in bytes, so memory stays flat however long the records are. What
is written while a user is read may be missing; nothing that was there before is.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from functools import partial

from ..errors import InvalidInput
from ..events import Event
from ..record import RESERVED_PREFIX, Record, Scope, Where, check_id
from ..store import KeepsVectors, Store
from ..store.codec import size_of
from ..store.vectors import place_of
from .arrivals import Arrival

PAGE_BYTES = 4 << 20
FIRST_PAGE, LONGEST_PAGE = 100, 1000  # records
_SAMPLED = 16  # of so many records, one is measured


class Leaving:
    """Reads users out of a store, and counts records that cannot be decoded."""

    def __init__(self, store: Store, *, vectors: bool) -> None:
        self._store = store
        self._with_vectors = vectors
        self.skipped = 0

    async def pages(self, user: str) -> AsyncIterator[list[Arrival]]:
        """Yield all records of a user."""
        corrupt = self._store.events.subscribe(partial(self._note, user), "record_corrupt")
        try:
            async for page in self._pages(Scope(user)):
                yield page
        finally:
            corrupt()

    def _note(self, user: str, event: Event) -> None:
        self.skipped += event.data["scope"].user == user

    async def _pages(self, scope: Scope) -> AsyncIterator[list[Arrival]]:
        newest = await self._store.select(scope, Where(limit=1, newest=True))
        late = newest[-1].seq if newest else 0
        last, limit, skip = 0, FIRST_PAGE, 0
        while True:
            page = await self._store.select(scope, Where(after=last, limit=limit, skip=skip))
            if page:
                yield await self._arrivals(scope.user, page, late)
                last, limit, skip = page[-1].seq, _next_limit(page), 0
            elif await self._store.count(scope, Where(after=last)) > skip:
                skip += limit  # a whole page of records that cannot be decoded
            else:
                return

    async def _arrivals(self, user: str, page: Sequence[Record], late: int) -> list[Arrival]:
        vectors = await self._vectors(user, page) if self._with_vectors else {}
        return [Arrival(user, each, vectors.get(each.seq, {}), each.seq > late) for each in page]

    async def _vectors(self, user: str, page: Sequence[Record]) -> dict[int, dict[str, bytes]]:
        if not isinstance(self._store, KeepsVectors):
            return {}
        found: dict[int, dict[str, bytes]] = {}
        places = [place_of(each) for each in page]
        for space in await self._store.vector_spaces(user):
            for seq, vector in (await self._store.vectors(user, space, places)).items():
                found.setdefault(seq, {})[space] = vector
        return found


async def users_of(store: Store, users: Sequence[str] | None) -> AsyncIterator[str]:
    """Yield the given users, each once, or every user of a store but the reserved ones."""
    if users is not None:
        for user in dict.fromkeys(users):
            yield check_user(user)
        return
    cursor: str | None = None
    while True:
        page = await store.users(cursor=cursor)
        for user in page.users:
            if not user.startswith(RESERVED_PREFIX):
                yield user
        cursor = page.cursor
        if cursor is None:
            return


async def total_records(store: Store, users: Sequence[str] | None) -> int:
    """Return how many records the users have."""
    return sum([await store.count(Scope(user)) async for user in users_of(store, users)])


def check_user(user: str) -> str:
    """Return a user id; raise ``InvalidInput`` if it is reserved or cannot be used."""
    if check_id("user id", user).startswith(RESERVED_PREFIX):
        raise InvalidInput(
            f"the user id {user!r} starts with {RESERVED_PREFIX!r}, which is reserved; choose "
            "another"
        )
    return user


def _next_limit(page: Sequence[Record]) -> int:
    sample = page[::_SAMPLED]
    mean = sum(map(size_of, sample)) // len(sample) + 1
    return max(1, min(LONGEST_PAGE, PAGE_BYTES // mean))
