"""SQL conditions and statements on records. Each one includes the user."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from msgspec.structs import replace as change
from sqlalchemy import (
    ARRAY,
    Column,
    Table,
    Text,
    and_,
    any_,
    bindparam,
    func,
    literal_column,
    or_,
    select,
    true,
    update,
)
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.engine import Dialect
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql import ColumnElement, Select

from ...record import MAX_NUMBER, Scope, Where
from ..codec import pack_marks, unpack_marks
from .schema import MYSQL_FAMILY, ExactText, records

Condition = list[ColumnElement[bool]]

MAX_IDS_PER_STATEMENT = 5000  # below the parameter limit of current databases
FEW_IDS = 50
SQLITE_WITH_RETURNING = (3, 35)

_r = records.c
END = func.coalesce(func.max(_r.index) + literal_column("1"), literal_column("0"))
_GIVEN = [column for column in records.c if column not in (_r.seq, _r.index)]
_ADD_ALONE = str(
    sqlite.insert(records)
    .from_select(
        [*(column.name for column in _GIVEN), _r.index.name],
        select(
            *(bindparam(column.name, type_=column.type) for column in _GIVEN),
            select(END)
            .where(_r.user_id == bindparam("user_id"), _r.session_id == bindparam("session_id"))
            .scalar_subquery(),
        ).where(true()),  # otherwise SQLite parses ON CONFLICT as a join
    )
    .on_conflict_do_nothing()
    .returning(_r.seq)
    .compile(dialect=sqlite.dialect(paramstyle="named"))
)


def owned_by(scope: Scope) -> Condition:
    """Return the condition that records belong to a scope."""
    if scope.session is None:
        return [_r.user_id == scope.user]
    return [_r.user_id == scope.user, _r.session_id == scope.session]


def alive(now: float) -> ColumnElement[bool]:
    """Return the condition that a record has not expired."""
    return _r.expires_at.is_(None) | (_r.expires_at > now)


def matching(scope: Scope, where: Where, dialect: Dialect) -> Condition:
    """Return the condition for ``where``, without its page and without expiry."""
    condition = owned_by(scope)
    if where.ids is not None:
        condition.append(_one_of(where.ids, dialect))
    if where.kind is not None:
        condition.append(_r.kind == where.kind)
    if where.after is not None:
        condition.append(_r.seq > where.after)
    if where.before is not None:
        condition.append(_r.seq < where.before)
    if where.marks:  # the first condition makes the index on marked records usable
        condition += [_r.marks != "", _carries_any(where.marks, dialect)]
    if where.without:
        condition.append(~_carries_any(where.without, dialect))
    return condition


def in_order(query: Select[Any], scope: Scope, where: Where) -> Select[Any]:
    """Order and page a query; with ``newest`` the newest record comes first."""
    ordered = query.order_by(_place(scope, where))
    if where.limit is None:
        return ordered
    return ordered.limit(where.limit).offset(where.skip or None)


def page_of(
    columns: Sequence[Column[Any]], condition: Condition, scope: Scope, where: Where
) -> Select[Any]:
    """Return the query for a page. It skips records without reading their values."""
    if not where.skip:
        return in_order(select(*columns).where(*condition), scope, where)
    chosen = in_order(select(_r.user_id, _r.seq).where(*condition), scope, where).subquery()
    same = and_(_r.user_id == chosen.c.user_id, _r.seq == chosen.c.seq)
    query = select(*columns).join(chosen, same)
    return query.where(*owned_by(scope)).order_by(_place(scope, where))


def up_to_the_page(where: Where) -> Where:
    """Return ``where`` with the skipped records included, to select in several pieces."""
    if where.limit is None:
        return where
    return change(where, limit=min(where.limit + where.skip, MAX_NUMBER), skip=0)


def split(where: Where) -> Iterator[Where]:
    """Split a long list of ids into pieces that every database accepts as parameters."""
    if where.ids is None or len(where.ids) <= MAX_IDS_PER_STATEMENT:
        yield where
        return
    for part in parts(where.ids):
        yield change(where, ids=frozenset(part))


def parts(items: Collection[Any], size: int = MAX_IDS_PER_STATEMENT) -> Iterator[list[Any]]:
    """Yield the items in lists that fit into one statement."""
    ordered = list(items)
    for start in range(0, len(ordered), size):
        yield ordered[start : start + size]


async def plan_for(on: AsyncConnection, where: Where) -> None:
    """Make PostgreSQL plan a query for the given ids.

    It hashes an array that is known at planning time. After a few calls it would switch to a
    generic plan, which compares each row with each id: minutes instead of a second for 40,000 ids.
    """
    if on.dialect.name == "postgresql" and where.ids is not None and len(where.ids) > FEW_IDS:
        await on.exec_driver_sql("SET LOCAL plan_cache_mode = force_custom_plan")


async def add_alone(on: AsyncConnection, row: dict[str, Any]) -> bool:
    """Insert one row into SQLite in one step; return False if impossible or the id is known.

    SQLite runs in a thread. SQLAlchemy makes three or four calls per statement, each of which waits
    for that thread. The driver needs only one.
    """
    if on.dialect.name != "sqlite" or sqlite3.sqlite_version_info < SQLITE_WITH_RETURNING:
        return False
    if on.sync_connection is None or on.sync_connection.get_execution_options().get(
        "schema_translate_map"
    ):
        return False  # SQLAlchemy has to substitute the table name
    driver = (await on.get_raw_connection()).driver_connection
    run_at_once = getattr(driver, "execute_fetchall", None)  # aiosqlite's
    return run_at_once is not None and bool(await run_at_once(_ADD_ALONE, row))


def current(query: Select[Any], on: AsyncConnection) -> Select[Any]:
    """Make a query in a caller's transaction read the current data.

    MySQL shows a transaction the data as of its first read. Our own transactions first read after
    they hold the lock.
    """
    is_guest = on.in_nested_transaction() and on.dialect.name in MYSQL_FAMILY
    return query.with_for_update() if is_guest else query


async def remark(
    on: AsyncConnection, condition: Condition, add: frozenset[str], remove: frozenset[str]
) -> int:
    """Change the marks of the matching rows, with one statement per distinct set of marks.

    The change is idempotent, so a set that becomes another listed set is not changed twice. The
    caller must hold the lock, or concurrent changes could overwrite each other.
    """
    changed = 0
    sets = current(select(_r.marks).where(*condition).distinct(), on)
    for packed in (await on.execute(sets)).scalars().all():
        marks = unpack_marks(packed)
        wanted = (marks - remove) | add
        if wanted != marks:
            change_marks = update(records).where(*condition, _r.marks == packed)
            changed += (await on.execute(change_marks.values(marks=pack_marks(wanted)))).rowcount
    return changed


def upsert(dialect: Dialect, table: Table, row: dict[str, Any], changes: dict[str, Any]) -> Any:
    """Return the statement that inserts a row or, if its key exists, updates it.

    One statement locks the row at once. A separate query and insert would make writers on MySQL
    wait for each other's gap locks.
    """
    if dialect.name in MYSQL_FAMILY:
        return mysql.insert(table).values(row).on_duplicate_key_update(changes)
    module = postgresql if dialect.name == "postgresql" else sqlite
    conflict = {"index_elements": table.primary_key.columns, "set_": changes}
    return module.insert(table).values(row).on_conflict_do_update(**conflict)


def _place(scope: Scope, where: Where) -> ColumnElement[Any]:
    place = _r.seq if scope.session is None else _r.index
    return place.desc() if where.newest and where.limit is not None else place


def _one_of(ids: Collection[str], dialect: Dialect) -> ColumnElement[bool]:
    """Return the condition that the id is one of ``ids``; PostgreSQL gets an array."""
    if dialect.name != "postgresql":
        return _r.id.in_(ids)
    return _r.id == any_(bindparam(None, list(ids), type_=ARRAY(Text()), unique=True))


def _carries_any(marks: Collection[str], dialect: Dialect) -> ColumnElement[bool]:
    position = func.strpos if dialect.name == "postgresql" else func.instr
    return or_(*(position(_r.marks, _needle(mark)) > 0 for mark in sorted(marks)))


def _needle(mark: str) -> ColumnElement[str]:
    return bindparam(None, pack_marks(frozenset({mark})), type_=ExactText(), unique=True)
