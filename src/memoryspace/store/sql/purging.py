"""Deletes expired rows: no operation sees them, but until then they take up space.

A purge works in small transactions, one for each user in a batch, so a writer waits for a moment at
most. Of all processes one purges at a time.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import groupby

from sqlalchemy import delete, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from ...record import Scope
from .schema import MYSQL_FAMILY, records
from .session_rows import lock, restamp
from .statements import owned_by
from .transactions import Transactions, Work

PURGE_LOCK = 0x6D656D71  # another number than the locks of the schema and of a migration
MOST_AT_ONCE = 5000

_r = records.c


async def expired_rows(on: AsyncConnection, now: float, most: int) -> dict[str, list[int]]:
    """Return the rows that expired first, as user → seqs. This looks at all users."""
    is_over = (_r.expires_at.is_not(None), _r.expires_at <= now)
    query = select(_r.user_id, _r.seq).where(*is_over).order_by(_r.expires_at).limit(most)
    rows = sorted((user, seq) for user, seq in await on.execute(query))
    return {user: [seq for _, seq in each] for user, each in groupby(rows, key=lambda row: row[0])}


async def purge_batch(transactions: Transactions, now: float, most: int) -> tuple[int, bool]:
    """Delete up to ``most`` expired rows; return how many, and whether there may be more.

    There is nothing more to do either if another process is purging.
    """
    found = await transactions.read(lambda on: expired_rows(on, now, most))
    purged = 0
    for user, seqs in found.items():
        gone = await transactions.write(_deletion(user, seqs, now), user=user)
        if gone is None:
            return purged, False
        purged += gone
    return purged, sum(map(len, found.values())) == most


def _deletion(user: str, seqs: list[int], now: float) -> Work[int | None]:
    async def work(on: AsyncConnection) -> int | None:
        async with _turn(on) as is_ours:
            return await _delete(on, user, seqs, now) if is_ours else None

    return work


async def _delete(on: AsyncConnection, user: str, seqs: list[int], now: float) -> int:
    """Delete rows of one user that are still expired, under the locks of their sessions."""
    these = [*owned_by(Scope(user)), _r.seq.in_(seqs)]
    names = sorted({*(await on.execute(select(_r.session_id).where(*these))).scalars()})
    for name in names:
        await lock(on, Scope(user, name))
    is_over = (_r.expires_at.is_not(None), _r.expires_at <= now)
    gone = (await on.execute(delete(records).where(*these, *is_over))).rowcount
    await restamp(on, user, names)
    return int(gone)


@asynccontextmanager
async def _turn(on: AsyncConnection) -> AsyncIterator[bool]:
    """Yield whether this process may purge now. SQLite has one writer at a time anyway."""
    dialect = on.dialect.name
    if dialect in MYSQL_FAMILY:
        name = f"memoryspace-{PURGE_LOCK}"
        taken = (await on.execute(text(f"SELECT GET_LOCK('{name}', 0)"))).scalar() == 1
        try:
            yield taken
        finally:
            if taken:
                await on.execute(text(f"SELECT RELEASE_LOCK('{name}')"))
    elif dialect == "postgresql":
        query = text(f"SELECT pg_try_advisory_xact_lock({PURGE_LOCK})")
        yield bool((await on.execute(query)).scalar_one())
    else:
        yield True
