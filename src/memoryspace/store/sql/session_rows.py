"""Session rows: the lock of a session, its end, and a stamp that changes with it.

On a server every session has a row. Writers update or lock it first, so all processes see the
session's changes in the same order. SQLite has one lock for everything. There a session has a row
only if something other than an append happened to it, and a user that lost a whole session has a
row with an empty session name.
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
    """Return a random number that no session has had, with near certainty."""
    return secrets.randbits(63)


async def lock(on: AsyncConnection, scope: Scope) -> list[str]:
    """Lock the sessions against other writers until the transaction ends.

    Return the sessions whose rows are locked.
    """
    if on.dialect.name == "sqlite":
        await take_write_lock(on)
        return []
    rows = select(_s.session_id).where(*_rows_of(scope)).order_by(_s.session_id)
    return [*(await on.execute(rows.with_for_update())).scalars()]


async def reserve(on: AsyncConnection, scope: Scope, places: int) -> int:
    """Lock the session, reserve consecutive indexes at its end, and return the first."""
    if on.dialect.name == "sqlite":
        await take_write_lock(on)
        return int((await on.execute(select(END).where(*owned_by(scope)))).scalar_one())
    return await _move_end(on, scope, places) - places


async def give_back(on: AsyncConnection, scope: Scope, places: int) -> None:
    """Return reserved indexes that are not needed."""
    if on.dialect.name != "sqlite":  # SQLite computes the end from the records
        await _move_end(on, scope, -places)


async def restamp(
    on: AsyncConnection, user: str, names: Iterable[str], *, may_be_empty: bool = True
) -> None:
    """Give locked sessions that lost records a new stamp; delete the rows of empty ones."""
    for name in sorted(names):
        await _stamp(on, user, name)
        if may_be_empty and not await _has_records(on, owned_by(Scope(user, name))):
            await _forget(on, user, name)


async def forget_all(
    on: AsyncConnection, scope: Scope, locked: Iterable[str], touched: set[str]
) -> None:
    """Delete the rows of locked sessions after all their records were deleted."""
    if on.dialect.name == "sqlite":
        await _forget_in_a_file(on, scope)
        return
    gone = {*locked}
    for part in parts(gone):
        await on.execute(delete(sessions).where(*_rows_of(scope), _s.session_id.in_(part)))
    await restamp(on, scope.user, touched - gone)  # created after the others were locked


async def _stamp(on: AsyncConnection, user: str, name: str) -> None:
    """Give a session a new stamp."""
    stamp = fresh_stamp()
    if on.dialect.name == "sqlite":
        row = {"user_id": user, "session_id": name, "next_index": 0, "changed": stamp}
        await on.execute(upsert(on.dialect, sessions, row, {"changed": stamp}))
    else:  # this also locks a session created after the others were locked
        rows = update(sessions).where(*_rows_of(Scope(user, name)))
        await on.execute(rows.values(changed=stamp))


async def _forget(on: AsyncConnection, user: str, name: str) -> None:
    """Delete the row of a locked, empty session."""
    if on.dialect.name == "sqlite":
        await _forget_in_a_file(on, Scope(user, name))
    else:
        await on.execute(delete(sessions).where(*_rows_of(Scope(user, name))))


async def _forget_in_a_file(on: AsyncConnection, scope: Scope) -> None:
    """Delete the rows of empty sessions; stamp the unnamed row, because a session is gone.

    A session that only had appends has no row, so the unnamed row has to record its deletion. A
    user without records needs no rows: new records get higher seqs than all known ones.
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
    """Lock a session, move its end (0 for a new one) and return it."""
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
