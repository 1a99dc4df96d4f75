"""The past of a space in terms of records: as it was at a moment, and what changed between two."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from msgspec import Struct

from ...kernel import PastSpace, at, diff
from ...record import Record
from .store import SpaceStore


class RecordChange(Struct, frozen=True):
    """A record that differs between two moments; ``None`` where it was not there."""

    user: str
    session: str
    id: str
    before: Record | None
    after: Record | None


class PastStore(SpaceStore):
    """The records of a space as they were at a moment. They can be read, not changed."""

    def __init__(self, past: PastSpace) -> None:
        super().__init__(manager=past)
        self.past = past

    async def close(self) -> None:
        """Free the memory of the view."""
        await super().close()
        await asyncio.to_thread(self.past.close)


async def store_at(
    store: SpaceStore, *, lsn: int | None = None, time: float | None = None
) -> PastStore:
    """Return the records of a store as they were at a moment; the caller closes it.

    Raises:
        InvalidInput: The space keeps no past, or not that far back.
    """
    return await asyncio.to_thread(lambda: PastStore(at(store.space, lsn=lsn, time=time)))


async def changes_between(
    store: SpaceStore, before: int, after: int | None = None
) -> list[RecordChange]:
    """Return the records that differ between two moments, by user, session and id."""
    found = await asyncio.to_thread(lambda: diff(store.space, before, after))
    async with await store_at(store, lsn=before) as earlier:
        gone = await earlier.records_in(found.removed | found.changed)
    if after is None:
        come = await store.records_in(found.added | found.changed)
    else:
        async with await store_at(store, lsn=after) as later:
            come = await later.records_in(found.added | found.changed)
    return _paired(gone, come)


def _paired(
    gone: Iterable[tuple[str, Record]], come: Iterable[tuple[str, Record]]
) -> list[RecordChange]:
    earlier = {(user, str(record.session), record.id): record for user, record in gone}
    later = {(user, str(record.session), record.id): record for user, record in come}
    return [
        RecordChange(*place, earlier.get(place), later.get(place))
        for place in sorted({*earlier, *later})
    ]
