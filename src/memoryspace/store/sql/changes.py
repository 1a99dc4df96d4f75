"""``Store.changes`` on a database.

On a server, two transactions can commit in a different order than their seqs were assigned, so the
highest seq alone does not show what is new. Each session is compared separately: its writers wait
for each other, and its row and its records become visible together. SQLite has one writer at a
time, so there a user's highest seq shows what is new.

The state is read before the records. A change in between is returned by this call or the next.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeAlias

from msgspec import Struct
from sqlalchemy import and_, exists, func, literal_column, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql import ColumnElement, Select

from ...record import Record
from ..contract import Changes, session_in
from .rows import COLUMNS, record_of
from .schema import records, sessions
from .session_rows import OF_ALL
from .statements import alive, parts

SESSIONS_AT_ONCE = 100  # per condition

Read: TypeAlias = Callable[
    [Select[Any], Callable[[Sequence[Any]], Record]], Awaitable[list[Record]]
]

_r = records.c
_s = sessions.c


class SessionState(Struct, frozen=True):
    """The known state of a session on a server: its row, and the last seq returned."""

    changed: int
    next_index: int
    last: int


class FileState(Struct, frozen=True):
    """The known state of a user in a SQLite file, and the last seq returned."""

    of_all: int
    stamps: dict[str, int]
    sessions: frozenset[str]
    last: int


class ChangeReader(Struct, frozen=True):
    """Reads what changed in one user's records."""

    on: AsyncConnection
    user: str
    now: float
    read: Read  # runs a query for records; reports and skips those that cannot be decoded

    async def changes(self, state: Any) -> Changes:
        """Return what changed since a state."""
        if self.on.dialect.name == "sqlite":
            return await self._in_a_file(state)
        return await self._on_a_server({} if state is None else state)

    async def names(self) -> list[str]:
        """Return the user's sessions that have live records, sorted."""
        is_file = self.on.dialect.name == "sqlite"
        name, query = _names_in_a_file(self.user) if is_file else _names_on_a_server(self.user)
        living = exists().where(_r.user_id == self.user, _r.session_id == name, alive(self.now))
        return sorted((await self.on.execute(query.where(living))).scalars())

    async def _on_a_server(self, known: dict[str, SessionState]) -> Changes:
        query = select(_s.session_id, _s.changed, _s.next_index).where(_s.user_id == self.user)
        there = {
            name: SessionState(changed, next_index, known[name].last if name in known else 0)
            for name, changed, next_index in await self.on.execute(query)
        }
        altered = [name for name in there if _is_altered(known.get(name), there[name])]
        moved = [name for name in there if known.get(name) != there[name]]
        kept = await self._listed(altered)
        last = {name: place.last for name, place in there.items()}
        found = await self._came({name: (known.get(name), there[name]) for name in moved}, last)
        state = {
            name: SessionState(place.changed, place.next_index, last[name])
            for name, place in there.items()
        }
        gone = (known.keys() - there.keys()) | (set(altered) - kept.keys())
        return Changes(state, found, kept, frozenset(gone))

    async def _came(
        self, moved: dict[str, tuple[SessionState | None, SessionState]], last: dict[str, int]
    ) -> list[Record]:
        """Return the new records; set the last seq of each session, including undecodable ones."""

        def decode(row: Sequence[Any]) -> Record:
            last[row[1]] = max(row[0], last.get(row[1], 0))
            return record_of(row)

        if all(known is None for known, _ in moved.values()) and len(moved) == len(last):
            everything = await self._records(decode)
            # A session created after the state was read is returned by the next call.
            return [record for record in everything if record.session in moved]
        found: list[Record] = []
        for part in parts(moved, SESSIONS_AT_ONCE):
            found += await self._records(
                decode, or_(*(_newer(name, *moved[name]) for name in part))
            )
        found.sort(key=lambda record: record.seq)
        return found

    async def _in_a_file(self, known: FileState | None) -> Changes:
        lowest, highest, stamps = await self._outline()
        of_all = stamps.pop(OF_ALL, 0)
        last = highest if known is None else max(highest, known.last)
        if known is None:
            found = await self._records(record_of, _r.seq <= last)
            state = FileState(of_all, stamps, frozenset(map(session_in, found)), last)
            return Changes(state, found, {}, frozenset())
        is_all = known.of_all != of_all or not 0 < lowest <= known.last
        altered = known.sessions if is_all else _differing(known.stamps, stamps)
        kept = await self._listed(None if is_all else altered)
        found = await self._records(record_of, _r.seq > known.last, _r.seq <= last)
        gone = (altered & known.sessions) - kept.keys()
        there = (known.sessions - gone) | kept.keys() | set(map(session_in, found))
        return Changes(FileState(of_all, stamps, there, last), found, kept, gone)

    async def _outline(self) -> tuple[int, int, dict[str, int]]:
        """Return the lowest and highest seq of a user, and the stamps of its sessions."""
        mine = select(_r.seq).where(_r.user_id == self.user).limit(1)
        ends = [mine.order_by(each).scalar_subquery() for each in (_r.seq, _r.seq.desc())]
        one = select(literal_column("1")).subquery()
        rows = one.outerjoin(sessions, _s.user_id == self.user)
        query = select(*ends, _s.session_id, _s.changed).select_from(rows)
        found = (await self.on.execute(query)).all()
        stamps = {row[2]: row[3] for row in found if row[2] is not None}
        return found[0][0] or 0, found[0][1] or 0, stamps

    async def _records(
        self, decode: Callable[[Sequence[Any]], Record], *condition: ColumnElement[bool]
    ) -> list[Record]:
        mine = [_r.user_id == self.user, alive(self.now), *condition]
        return await self.read(select(*COLUMNS).where(*mine).order_by(_r.seq), decode)

    async def _listed(self, names: Iterable[str] | None) -> dict[str, dict[str, int]]:
        """Return id → seq of the live records in some sessions, or in all; omit empty sessions."""
        mine = [_r.user_id == self.user, alive(self.now)]
        query = select(_r.session_id, _r.id, _r.seq).where(*mine)
        chosen = [query] if names is None else [
            query.where(_r.session_id.in_(part)) for part in parts([*names])
        ]  # fmt: skip
        kept: dict[str, dict[str, int]] = {}
        for each in chosen:
            for name, id_, seq in await self.on.execute(each):
                kept.setdefault(name, {})[id_] = seq
        return kept


def _is_altered(known: SessionState | None, there: SessionState) -> bool:
    return known is not None and known.changed != there.changed


def _differing(known: dict[str, int], there: dict[str, int]) -> frozenset[str]:
    names = known.keys() | there.keys()
    return frozenset(name for name in names if known.get(name) != there.get(name))


def _newer(name: str, known: SessionState | None, there: SessionState) -> ColumnElement[bool]:
    """Return the condition for a session's new records. A new row restarts the indexes."""
    if known is None:
        return _r.session_id == name
    if _is_altered(known, there):
        return and_(_r.session_id == name, _r.seq > known.last)
    return and_(_r.session_id == name, _r.index >= known.next_index, _r.seq > known.last)


def _names_on_a_server(user: str) -> tuple[ColumnElement[str], Select[Any]]:
    return _s.session_id, select(_s.session_id).where(_s.user_id == user)


def _names_in_a_file(user: str) -> tuple[ColumnElement[str], Select[Any]]:
    """Return the names by skipping from one to the next in the index."""
    lowest = select(func.min(_r.session_id).label("name")).where(_r.user_id == user)
    found = lowest.cte("found", recursive=True)
    above = lowest.where(_r.session_id > found.c.name).correlate(found).scalar_subquery()
    names = found.union_all(select(above).where(found.c.name.is_not(None)))
    return names.c.name, select(names.c.name).where(names.c.name.is_not(None))
