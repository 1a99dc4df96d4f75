"""``SQLStore``: records in SQLite, PostgreSQL, MySQL or MariaDB through SQLAlchemy."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from msgspec import to_builtins
from sqlalchemy import Column, Select, delete, func, insert, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession

from ...errors import CorruptData, InvalidInput
from ...events import EventStream
from ...record import EVERYTHING, Record, Scope, Value, Where, as_marks
from ..codec import unpack_marks
from ..contract import Changes, Clock, Store, admit, limited, session_of, state_in
from ..erasures import FILE as LEDGER
from ..erasures import ErasureLedger
from ..remains import Remainder
from ..users import USERS_AT_ONCE, Usage, UserPage, checked_limit, user_before
from ..vectors import Kept, Place, check_space, check_vectors
from . import vectors as vector_rows
from .changes import ChangeReader, FileState, SessionState
from .engines import file_of, has_one_connection, state_of
from .opening import open_engine, options_in
from .purging import MOST_AT_ONCE, purge_batch
from .replica import Replica
from .rows import COLUMNS, VALUE_COLUMNS, record_of, row_of, value_of
from .schema import records as table
from .session_rows import forget_all, give_back, lock, reserve, restamp
from .statements import (
    MAX_IDS_PER_STATEMENT,
    Condition,
    add_alone,
    alive,
    current,
    in_order,
    matching,
    owned_by,
    page_of,
    parts,
    plan_for,
    remark,
    split,
    up_to_the_page,
)
from .transactions import Transactions
from .users import page_of_users, usage_of

T = TypeVar("T")
PURGED_AT_ONCE = 500
ROWS_AT_ONCE = 500  # small batches are freed early and trigger Python's collector less often

_r = table.c
_GONE = (_r.id, _r.session_id, _r.expires_at)


class SQLStore(Store):
    """A store in SQLite, PostgreSQL, MySQL or MariaDB.

    The tables are created on first use.

    Args:
        bind: An engine; or a session, whose open transaction is joined (see ``transactions``); or
            an address such as ``postgresql://user:password@host/name``, for which the store creates
            an engine that ``close`` disposes of.
        partitions: Into how many partitions, by a hash of the user, the tables are divided when
            they are made (PostgreSQL only). Tables that exist must have that number. By default
            new tables are whole, and any are opened.
        replica: A hot standby of the database that answers reads inside ``stale_reads``
            (PostgreSQL only): an engine, which the caller disposes of, or an address.
        clock: Returns the current time in seconds since the epoch.
        events: The stream to emit events on; a new one by default.

    Raises:
        InvalidInput: ``bind`` is of another type, or its database is not supported.
        MissingExtra: The database driver is not installed.

    Example::

        async with SQLStore("sqlite:///memory.db") as store:
            await store.append(Scope("alice", "s1"), [Record("r1", "Tea.", kind="note")])
    """

    def __init__(
        self,
        bind: AsyncEngine | AsyncSession | str,
        *,
        partitions: int | None = None,
        replica: AsyncEngine | str | None = None,
        clock: Clock = time.time,
        events: EventStream | None = None,
    ) -> None:
        super().__init__(clock=clock, events=events)
        self._own_engines: list[AsyncEngine] = []
        if isinstance(bind, str):
            options = options_in(bind)
            partitions = options.partitions if partitions is None else partitions
            replica = options.replica if replica is None else replica
            bind = self._opened(bind)
        self._transactions = Transactions(bind, partitions=partitions)
        self.engine = bind if isinstance(bind, AsyncEngine) else None  # None for a caller's session
        file = self.file
        if file is not None:
            self.erasures = ErasureLedger(f"{file}.{LEDGER}", only_if_there=True)
        if replica is not None:
            self._read_from(replica)

    def __repr__(self) -> str:
        bind = "a session" if self.engine is None else self.engine.dialect.name
        return f"SQLStore({bind})"  # not the address, which may contain a password

    @property
    def file(self) -> Path | None:
        """The file of a SQLite database; ``None`` if the store has no engine for a file."""
        return None if self.engine is None else file_of(self.engine)

    @property
    def is_durable(self) -> bool | None:
        """Whether writes survive a crash; ``None`` on a caller's session, which commits later."""
        return None if self.engine is None else not has_one_connection(self.engine)

    async def append(self, scope: Scope, records: Sequence[Record]) -> list[str]:
        session_of(scope)
        rows = [row_of(scope, record) for record in admit(records)]
        return await self._transactions.write(
            lambda on: self._append(on, scope, rows), user=scope.user
        )

    async def select(self, scope: Scope, where: Where = EVERYTHING) -> list[Record]:
        return await self._transactions.read(
            lambda on: self._select(on, scope, where), user=scope.user
        )

    async def values(self, scope: Scope, where: Where = EVERYTHING) -> list[Value]:
        """Return only the values of the matching records, reading fewer columns."""
        if where.ids is not None and len(where.ids) > MAX_IDS_PER_STATEMENT:
            return await super().values(scope, where)
        return await self._transactions.read(
            lambda on: self._fetch(on, scope, where, VALUE_COLUMNS, value_of), user=scope.user
        )

    async def replace(
        self, scope: Scope, where: Where, records: Sequence[Record], *, if_found: bool = False
    ) -> list[str]:
        name = session_of(scope)
        rows = [row_of(scope, record) for record in admit(records)]

        async def work(on: AsyncConnection) -> list[str]:
            if if_found:
                await lock(on, scope)
            else:
                await reserve(on, scope, 0)  # locks the session, even a new one
            removed, touched = await self._delete(on, scope, where)
            new = [] if if_found and not removed else rows
            added = await self._append(on, scope, new)
            if not if_found and not new:
                touched.add(name)  # it may have been created by reserve
            await restamp(on, scope.user, touched, may_be_empty=not new)
            return added

        return await self._transactions.write(work, user=scope.user)

    async def mark(
        self, scope: Scope, where: Where, *, add: Collection[str] = (), remove: Collection[str] = ()
    ) -> int:
        put_on, take_off = as_marks(frozenset(add)), as_marks(frozenset(remove))

        async def work(on: AsyncConnection) -> int:
            await lock(on, scope)
            conditions = await self._conditions(on, scope, where)
            living = alive(self.clock())
            return sum([await remark(on, [*each, living], put_on, take_off) for each in conditions])

        return await self._transactions.write(work, user=scope.user)

    async def delete(self, scope: Scope, where: Where = EVERYTHING) -> list[str]:
        async def work(on: AsyncConnection) -> list[str]:
            locked = await lock(on, scope)
            removed, touched = await self._delete(on, scope, where)
            if where == EVERYTHING:
                await forget_all(on, scope, locked, touched)
            else:
                await restamp(on, scope.user, touched)
            return removed

        return await self._transactions.write(work, user=scope.user)

    async def count(self, scope: Scope, where: Where = EVERYTHING) -> int:
        async def work(on: AsyncConnection) -> int:
            found, now = 0, self.clock()
            for condition in await self._conditions(on, scope, where):
                counting = select(func.count()).select_from(table).where(*condition, alive(now))
                found += (await on.execute(counting)).scalar_one()
            return found

        return await self._transactions.read(work, user=scope.user)

    async def sessions(self, user: str) -> list[str]:
        return await self._transactions.read(lambda on: self._reader(on, user).names(), user=user)

    async def changes(self, user: str, state: Any = None) -> Changes:
        return await self._transactions.read(lambda on: self._reader(on, user).changes(state))

    def dump_state(self, state: Any) -> Any:
        """Return a state as plain data, unless the database ends with the process or is lent."""
        if self.engine is None or has_one_connection(self.engine):
            return None
        return to_builtins(state)

    def load_state(self, kept: Any, listed: Mapping[str, Mapping[str, int]]) -> Any:
        is_file = self.engine is not None and self.engine.dialect.name == "sqlite"
        return state_in(kept, FileState if is_file else dict[str, SessionState])

    async def vectors(self, user: str, space: str, places: Collection[Place]) -> dict[int, bytes]:
        check_space(user, space)
        return await self._transactions.read(
            lambda on: vector_rows.read(on, user, space, places, self.clock())
        )

    async def put_vectors(self, user: str, space: str, vectors: Mapping[Place, bytes]) -> int:
        check_vectors(user, space, vectors)
        if not vectors:
            return 0
        return await self._transactions.write(
            lambda on: vector_rows.write(on, user, space, vectors, self.clock())
        )

    async def vector_spaces(self, user: str) -> dict[str, Kept]:
        return await self._transactions.read(lambda on: vector_rows.spaces(on, user, self.clock()))

    async def drop_vectors(self, user: str, space: str) -> int:
        check_space(user, space)
        return await self._transactions.write(lambda on: vector_rows.drop(on, user, space))

    async def users(self, *, cursor: str | None = None, limit: int = USERS_AT_ONCE) -> UserPage:
        after, most = user_before(cursor), checked_limit(limit)
        return await self._transactions.read(
            lambda on: page_of_users(on, after, most, self.clock())
        )

    async def usage(self, user: str) -> Usage:
        return await self._transactions.read(lambda on: usage_of(on, user, self.clock()), user=user)

    async def purge(self, *, at_once: int = PURGED_AT_ONCE) -> int:
        """Delete the rows of expired records now, of all users, and return how many.

        No operation sees these records, so this only frees their space. It works in batches and
        lets others write in between. While another process purges, this returns at once. ``Purger``
        calls it in the background. The event ``purged`` says how many there were.

        Args:
            at_once: The most rows to delete before others get their turn.

        Raises:
            InvalidInput: ``at_once`` is out of range.
        """
        if not 1 <= at_once <= MOST_AT_ONCE:
            raise InvalidInput(f"at_once must be 1 to {MOST_AT_ONCE}, got {at_once}")
        purged, has_more = 0, True
        while has_more:
            gone, has_more = await purge_batch(self._transactions, self.clock(), at_once)
            purged += gone
        if purged:
            self.events.emit("purged", records=purged)
        return purged

    async def remains(self) -> tuple[Remainder, ...]:
        """Empty SQLite's log; return where the database may hold bytes of deleted records."""
        return await self._transactions.remains()

    async def scrub(self) -> None:
        """Rewrite a SQLite file, so that neither it nor its log contains deleted data.

        This takes time in proportion to the file's size and blocks writers. Only a server itself
        can rewrite its files; ``remains`` says how.

        Raises:
            InvalidInput: The database is not SQLite, or the store is on a caller's session.
            StoreBusy: Other connections prevented it; try again.
        """
        await self._transactions.scrub()

    async def create_tables(self) -> None:
        """Create the tables now instead of on first use."""
        await self._transactions.prepare()

    async def close(self) -> None:
        """Merge SQLite's log into its file; dispose of the engine if this store created it.

        The store reconnects when used again.
        """
        await self._transactions.settle()
        for engine in self._own_engines:
            await engine.dispose()

    def _opened(self, address: str) -> AsyncEngine:
        self._own_engines.append(open_engine(address))
        return self._own_engines[-1]

    def _read_from(self, replica: AsyncEngine | str) -> None:
        """Use a replica, together with all who use the same pool of connections."""
        if self.engine is None:
            raise InvalidInput("a store on a session cannot have a replica; open it on the engine")
        engine = self._opened(replica) if isinstance(replica, str) else replica

        def skipped(user: str, reason: str) -> None:
            self.events.emit("replica_skipped", user=user, reason=reason)

        state_of(self.engine).replica = Replica(engine, self.engine, on_skip=skipped)

    async def _append(
        self, on: AsyncConnection, scope: Scope, rows: list[dict[str, Any]]
    ) -> list[str]:
        """Insert rows under the session's lock, so that known ids and the next index stay valid."""
        if not rows:
            return []
        if len(rows) == 1 and await add_alone(on, rows[0]):
            return [rows[0]["id"]]
        start = await reserve(on, scope, len(rows))
        known = await self._known(on, scope, rows)
        if not on.in_nested_transaction():
            return await self._place(on, scope, rows, known, start)
        try:
            async with on.begin_nested():
                return await self._place(on, scope, rows, known, start)
        except IntegrityError:  # another process stored one of these after the caller began
            known = await self._known(on, scope, rows, is_stale=True)
            return await self._place(on, scope, rows, known, start)

    async def _place(
        self,
        on: AsyncConnection,
        scope: Scope,
        rows: list[dict[str, Any]],
        known: set[str],
        start: int,
    ) -> list[str]:
        """Insert the unknown rows from index ``start`` on; merge the marks of the known ones."""
        new = [row for row in rows if row["id"] not in known]
        if known:
            await give_back(on, scope, len(rows) - len(new))
            await self._merge_marks(on, scope, [row for row in rows if row["id"] in known])
        if new:
            placed = [{**row, "index": place} for place, row in enumerate(new, start)]
            await on.execute(insert(table), placed)
        return [row["id"] for row in new]

    async def _known(
        self,
        on: AsyncConnection,
        scope: Scope,
        rows: list[dict[str, Any]],
        *,
        is_stale: bool = False,
    ) -> set[str]:
        """Return which ids are stored; delete the expired ones.

        A locking read also locks the gaps where an id is missing and blocks writers there. So it is
        used only if a plain read has proved outdated (``is_stale``).
        """
        known: set[str] = set()
        expired: set[str] = set()
        now = self.clock()
        for these in split(Where(ids=frozenset(row["id"] for row in rows))):
            await plan_for(on, these)
            query = select(_r.id, _r.expires_at).where(*matching(scope, these, on.dialect))
            for record_id, expires_at in await on.execute(
                current(query, on) if is_stale else query
            ):
                is_over = expires_at is not None and expires_at <= now
                (expired if is_over else known).add(record_id)
        for part in parts(expired):
            await on.execute(delete(table).where(*owned_by(scope), _r.id.in_(part)))
        return known

    async def _merge_marks(
        self, on: AsyncConnection, scope: Scope, rows: list[dict[str, Any]]
    ) -> None:
        for packed in {row["marks"] for row in rows if row["marks"]}:
            for part in parts([row["id"] for row in rows if row["marks"] == packed]):
                these = [*owned_by(scope), _r.id.in_(part)]
                await remark(on, these, unpack_marks(packed), frozenset())

    async def _select(self, on: AsyncConnection, scope: Scope, where: Where) -> list[Record]:
        pieces = list(split(where))
        if len(pieces) == 1:
            return await self._fetch(on, scope, where, COLUMNS, record_of)
        found: list[Record] = []  # each piece is ordered and limited, their union is not
        for piece in pieces:
            found += await self._fetch(on, scope, up_to_the_page(piece), COLUMNS, record_of)
        found.sort(key=lambda record: record.seq)
        return limited(found, where)

    async def _fetch(
        self,
        on: AsyncConnection,
        scope: Scope,
        where: Where,
        columns: Sequence[Column[Any]],
        decode: Callable[[Sequence[Any]], T],
    ) -> list[T]:
        """Decode the matching rows."""
        await plan_for(on, where)
        condition = [*matching(scope, where, on.dialect), alive(self.clock())]
        found = await self._read(on, scope, page_of(columns, condition, scope, where), decode)
        if where.newest and where.limit is not None:
            found.reverse()
        return found

    async def _read(
        self,
        on: AsyncConnection,
        scope: Scope,
        query: Select[Any],
        decode: Callable[[Sequence[Any]], T],
    ) -> list[T]:
        """Decode the rows of a query; report and skip those that cannot be decoded.

        The first column must be ``seq``, which identifies such a row.
        """
        result = await on.execute(query)
        found: list[T] = []
        corrupt: dict[int, CorruptData] = {}
        for rows in result.partitions(ROWS_AT_ONCE):
            for row in rows:
                try:
                    found.append(decode(row))
                except CorruptData as error:
                    corrupt[row[0]] = error
        if corrupt:
            await self._report(on, scope, corrupt)
        return found

    def _reader(self, on: AsyncConnection, user: str) -> ChangeReader:
        return ChangeReader(on, user, self.clock(), partial(self._read, on, Scope(user)))

    async def _report(
        self, on: AsyncConnection, scope: Scope, corrupt: dict[int, CorruptData]
    ) -> None:
        for part in parts(corrupt):
            query = select(_r.seq, _r.session_id, _r.id).where(*owned_by(scope), _r.seq.in_(part))
            for seq, session, id_ in await on.execute(query):
                self.report_corrupt(Scope(scope.user, session), id_, corrupt[seq])

    async def _delete(
        self, on: AsyncConnection, scope: Scope, where: Where
    ) -> tuple[list[str], set[str]]:
        """Delete the matching rows; return their ids and the sessions that lost rows.

        Expired rows are deleted too, but their ids are not returned.
        """
        removed: list[str] = []
        touched: set[str] = set()
        now = self.clock()
        for condition in await self._conditions(on, scope, where):
            removal = delete(table).where(*condition)
            if on.dialect.delete_returning:
                rows = (await on.execute(removal.returning(*_GONE))).all()
            else:
                rows = (await on.execute(select(*_GONE).where(*condition).with_for_update())).all()
                await on.execute(removal)
            removed += [id_ for id_, _, expires in rows if expires is None or expires > now]
            touched.update(name for _, name, _ in rows)
        return removed, touched

    async def _conditions(self, on: AsyncConnection, scope: Scope, where: Where) -> list[Condition]:
        """Return conditions that together select the matching rows, each for one statement.

        Without a limit they include expired rows.
        """
        await plan_for(on, where)
        if where.limit is None:
            return [matching(scope, each, on.dialect) for each in split(where)]
        seqs = await self._limited_seqs(on, scope, where)
        return [[*owned_by(scope), _r.seq.in_(part)] for part in parts(seqs)]

    async def _limited_seqs(self, on: AsyncConnection, scope: Scope, where: Where) -> list[int]:
        seqs: list[int] = []
        for piece in split(where):
            condition = [*matching(scope, piece, on.dialect), alive(self.clock())]
            query = current(select(_r.seq).where(*condition), on)
            seqs += (await on.execute(in_order(query, scope, up_to_the_page(where)))).scalars()
        return limited(sorted(seqs), where)
