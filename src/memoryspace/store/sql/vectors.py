"""Vectors in a database: one row each, which references the record's row."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import (
    ARRAY,
    BigInteger,
    LargeBinary,
    and_,
    any_,
    bindparam,
    delete,
    func,
    literal,
    select,
    update,
)
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.engine import Dialect
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql import ColumnElement

from ..vectors import Kept, Place
from .engines import take_write_lock
from .schema import MYSQL_FAMILY, records, vectors
from .statements import alive, parts

AT_ONCE = 1000  # vectors per statement

_r, _v = records.c, vectors.c


async def read(
    on: AsyncConnection, user: str, space: str, places: Collection[Place], now: float
) -> dict[int, bytes]:
    """Return the vectors of live records, by seq."""
    wanted = {place.seq: place for place in places}
    found: dict[int, bytes] = {}
    columns = (_v.seq, _r.session_id, _r.id, _v.vector)
    for part in parts(wanted, AT_ONCE):
        query = select(*columns).join(records, _of_its_record())
        query = query.where(_v.space == space, _v.user_id == user, alive(now))
        for seq, session, id_, vector in await on.execute(
            query.where(_one_of(_v.seq, part, on.dialect))
        ):
            if wanted[seq] == (session, id_, seq):
                found[seq] = bytes(vector)
    return found


async def write(
    on: AsyncConnection, user: str, space: str, given: Mapping[Place, bytes], now: float
) -> int:
    """Store vectors of live records, which are locked against deletion until then."""
    if on.dialect.name == "sqlite":
        await take_write_lock(on)
    by_seq = {place.seq: place for place in given}
    kept = 0
    for part in parts(sorted(by_seq), AT_ONCE):
        query = select(_r.seq, _r.session_id, _r.id).where(
            _r.user_id == user, alive(now), _one_of(_r.seq, part, on.dialect)
        )
        there = query.order_by(_r.seq).with_for_update(read=True, key_share=True)
        rows = [
            {"seq": seq, "space": space, "user_id": user, "vector": given[by_seq[seq]]}
            for seq, session, id_ in await on.execute(there)
            if by_seq[seq] == (session, id_, seq)
        ]
        if rows and on.dialect.name == "postgresql":
            await _put_on_postgres(on, user, space, rows)
        elif rows:
            await on.execute(_put(on.dialect), rows)
        kept += len(rows)
    return kept


async def spaces(on: AsyncConnection, user: str, now: float) -> dict[str, Kept]:
    """Return the number and size of a user's vectors, by space."""
    size = func.coalesce(func.sum(func.length(_v.vector)), 0)
    query = select(_v.space, func.count(), size).join(records, _of_its_record())
    query = query.where(_v.user_id == user, alive(now)).group_by(_v.space)
    return {space: Kept(count, int(size)) for space, count, size in await on.execute(query)}


async def drop(on: AsyncConnection, user: str, space: str) -> int:
    """Delete all vectors of a user in a space."""
    return (await on.execute(delete(vectors).where(_v.user_id == user, _v.space == space))).rowcount


def _put(dialect: Dialect) -> Any:
    """Return the statement that inserts a row or, if it exists, updates its vector."""
    if dialect.name in MYSQL_FAMILY:
        adding = mysql.insert(vectors)
        return adding.on_duplicate_key_update(vector=adding.inserted.vector)
    new = sqlite.insert(vectors)
    return new.on_conflict_do_update(
        index_elements=vectors.primary_key.columns, set_={"vector": new.excluded.vector}
    )


async def _put_on_postgres(
    on: AsyncConnection, user: str, space: str, rows: list[dict[str, Any]]
) -> None:
    """Insert all rows in one statement; update those that exist.

    An upsert would name the key, which a migration changes while this runs.
    """
    sent = func.unnest(_array([row["seq"] for row in rows], BigInteger()),
                       _array([row["vector"] for row in rows], LargeBinary()))  # fmt: skip
    given = sent.table_valued("seq", "vector").render_derived(name="given")
    mine = [literal(user).label("user_id"), literal(space).label("space")]
    new = postgresql.insert(vectors).from_select(
        ["seq", "vector", "user_id", "space"], select(given.c.seq, given.c.vector, *mine)
    )
    added = await on.execute(new.on_conflict_do_nothing().returning(_v.seq))
    if len(added.all()) < len(rows):
        known = (_v.user_id == user, _v.space == space, _v.seq == given.c.seq)
        await on.execute(update(vectors).where(*known).values(vector=given.c.vector))


def _array(values: list[Any], type_: Any) -> ColumnElement[Any]:
    return bindparam(None, values, type_=ARRAY(type_), unique=True)


def _of_its_record() -> ColumnElement[bool]:
    return and_(_r.user_id == _v.user_id, _r.seq == _v.seq)


def _one_of(seq: ColumnElement[int], seqs: list[int], dialect: Dialect) -> ColumnElement[bool]:
    """Return the condition that a seq is one of ``seqs``; PostgreSQL gets an array."""
    if dialect.name != "postgresql":
        return seq.in_(seqs)
    return seq == any_(bindparam(None, seqs, type_=ARRAY(BigInteger()), unique=True))
