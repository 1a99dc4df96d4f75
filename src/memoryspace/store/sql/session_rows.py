"""The row of a session: its lock, the end of it, and a number that changes with it.

On a server every session has one. Whoever writes to a session changes or locks its row first, so
its records come and go in one order for all. SQLite has one lock for everything; there only
sessions that had more done to them than appends have a row, and a user of whom a whole session
has gone has one without a name.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable

from sqlalchemy import delete, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from ...record import Scope
from .engines import take_write_lock
from .schema import records, sessions
from .statements import END, Condition, current, owned_by, parts, upsert

OF_ALL = ""  # no session has this name

_r = records.c
_s = sessions.c


def fresh_stamp() -> int:
    """Return a number that no session ever had, as far as chance goes."""
    return secrets.randbits(63)


async def lock(on: AsyncConnection, scope: Scope) -> list[str]:
    """Make other writers to these sessions wait until this transaction ends.

    Returns the sessions that are locked by their rows.
    """
    if on.dialect.name == "sqlite":
        await take_write_lock(on)
        return []
    rows = select(_s.session_id).where(*_rows_of(scope)).order_by(_s.session_id)
    return [*(await on.execute(rows.with_for_update())).scalars()]


async def reserve(on: AsyncConnection, scope: Scope, places: int) -> int:
    """Lock the session and return the first of so many consecutive places at its end."""
    if on.dialect.name == "sqlite":
        await take_write_lock(on)
        return int((await on.execute(select(END).where(*owned_by(scope)))).scalar_one())
    return await _move_end(on, scope, places) - places


async def give_back(on: AsyncConnection, scope: Scope, places: int) -> None:
    """Move the end of a session back by places that were reserved and not needed."""
    if on.dialect.name != "sqlite":  # there the end is read off the records
        await _move_end(on, scope, -places)


async def restamp(
    on: AsyncConnection, user: str, names: Iterable[str], *, may_be_empty: bool = True
) -> None:
    """Note that records went from sessions that are locked; one that is empty leaves no row."""
    for name in sorted(names):
        await _stamp(on, user, name)
        if may_be_empty and not await _has_records(on, owned_by(Scope(user, name))):
            await _forget(on, user, name)


async def forget_all(
    on: AsyncConnection, scope: Scope, locked: Iterable[str], touched: set[str]
) -> None:
    """Note that everything went: the rows of sessions that are locked go too."""
    if on.dialect.name == "sqlite":
        await _forget_in_a_file(on, scope)
        return
    gone = {*locked}
    for part in parts(gone):
        await on.execute(delete(sessions).where(*_rows_of(scope), _s.session_id.in_(part)))
    await restamp(on, scope.user, touched - gone)  # those that began after we locked the others


async def _stamp(on: AsyncConnection, user: str, name: str) -> None:
    """Give a session another number."""
    stamp = fresh_stamp()
    if on.dialect.name == "sqlite":
        row = {"user_id": user, "session_id": name, "next_index": 0, "changed": stamp}
        await on.execute(upsert(on.dialect, sessions, row, {"changed": stamp}))
    else:  # which also locks it, if it began after we locked the others
        rows = update(sessions).where(*_rows_of(Scope(user, name)))
        await on.execute(rows.values(changed=stamp))


async def _forget(on: AsyncConnection, user: str, name: str) -> None:
    """Remove the row of a session that is locked and empty."""
    if on.dialect.name == "sqlite":
        await _forget_in_a_file(on, Scope(user, name))
    else:
        await on.execute(delete(sessions).where(*_rows_of(Scope(user, name))))


async def _forget_in_a_file(on: AsyncConnection, scope: Scope) -> None:
    """Remove rows of what is empty; a row without a name says that some session is gone.

    Sessions that were only ever appended to have no row that could go. Of a user who has nothing
    left no row stays: whoever comes again has higher seqs than any that were seen.
    """
    user = Scope(scope.user)
    if await _has_records(on, owned_by(user)):
        await on.execute(delete(sessions).where(*_rows_of(scope)))
        await _stamp(on, scope.user, OF_ALL)
    else:
        await on.execute(delete(sessions).where(*_rows_of(user)))


async def _has_records(on: AsyncConnection, condition: Condition) -> bool:
    any_of_them = current(select(_r.seq).where(*condition).limit(1), on)
    return (await on.execute(any_of_them)).first() is not None


async def _move_end(on: AsyncConnection, scope: Scope, by: int) -> int:
    """Move the end of a session, of a new one from 0, and return it; the session is locked then."""
    row = {
        "user_id": scope.user,
        "session_id": scope.session,
        "next_index": by,
        "changed": fresh_stamp(),
    }
    statement = upsert(on.dialect, sessions, row, {"next_index": _s.next_index + by})
    if on.dialect.name == "postgresql":
        return int((await on.execute(statement.returning(_s.next_index))).scalar_one())
    await on.execute(statement)
    return int((await on.execute(select(_s.next_index).where(*_rows_of(scope)))).scalar_one())


def _rows_of(scope: Scope) -> Condition:
    if scope.session is None:
        return [_s.user_id == scope.user]
    return [_s.user_id == scope.user, _s.session_id == scope.session]
