"""The users of a database, found by skipping from one to the next in the index."""

from __future__ import annotations

from typing import Any

from sqlalchemy import LargeBinary, cast, exists, func, literal, select
from sqlalchemy.engine import Dialect
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql import ColumnElement

from ..users import Usage, UserPage, cursor_after
from .schema import MYSQL_FAMILY, records
from .statements import alive

_r = records.c


async def page_of_users(on: AsyncConnection, after: str, limit: int, now: float) -> UserPage:
    """Return the users after ``after`` among the next ``limit``, without reading their records."""
    lowest = select(func.min(_r.user_id).label("name"), literal(1).label("nth"))
    found = lowest.where(_r.user_id > after).cte("found", recursive=True)
    above = select(func.min(_r.user_id)).where(_r.user_id > found.c.name).correlate(found)
    onward = select(above.scalar_subquery(), found.c.nth + 1)
    names = found.union_all(onward.where(found.c.name.is_not(None), found.c.nth < limit))
    lives = exists().where(_r.user_id == names.c.name, alive(now))
    query = select(names.c.name, lives).where(names.c.name.is_not(None)).order_by(names.c.nth)
    rows = (await on.execute(query)).all()
    cursor = cursor_after(rows[-1][0]) if len(rows) == limit else None
    return UserPage(tuple(name for name, is_living in rows if is_living), cursor)


async def usage_of(on: AsyncConnection, user: str, now: float) -> Usage:
    """Return how much a user has stored, summed by the database."""
    columns = (_r.value, _r.text, _r.origin)
    sizes = [func.coalesce(_bytes_of(each, on.dialect), 0) for each in columns]
    size = func.coalesce(func.sum(sizes[0] + sizes[1] + sizes[2]), 0)
    query = select(func.count(), func.count(_r.session_id.distinct()), size)
    counts = (await on.execute(query.where(_r.user_id == user, alive(now)))).one()
    return Usage(*map(int, counts))


def _bytes_of(column: ColumnElement[Any], dialect: Dialect) -> ColumnElement[int]:
    if dialect.name in MYSQL_FAMILY:
        return func.length(column)
    if dialect.name == "sqlite":
        return func.length(cast(column, LargeBinary))
    return func.octet_length(column)
