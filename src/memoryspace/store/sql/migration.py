"""``migrate``: brings the tables of a server to the present layout while they are in use.

Every step looks at the database's catalogue to see what is left to do. So a migration that was
interrupted goes on where it stopped, and one that is complete does nothing. Records are neither
copied nor locked: indexes are built beside writers, and only the change of a key takes a table's
lock, for a moment, and gives up and tries again rather than make others wait.

Processes of the former release read and write until the keys change; upgrade them before that.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

from msgspec import Struct
from sqlalchemy import inspect, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from ...errors import StoreBusy
from ...retrying import Attempts, Backoff
from . import layout
from .engines import schema_lock, state_of
from .errors import translated
from .opening import open_engine

logger = logging.getLogger(__name__)

MIGRATION_LOCK = 0x6D656D70  # another number than the lock under which tables are made
LOCK_MILLISECONDS = 300  # to wait for a table; others queue behind us meanwhile

_BACKOFF = Backoff(first=0.1, longest=3.0, attempts=60)
_BY_USER = "_by_user"


class Step(Struct, frozen=True):
    """One step of a migration.

    Attributes:
        name: What the step does.
        done: How many steps were done before it.
        total: How many steps there are.
    """

    name: str
    done: int
    total: int


Progress: TypeAlias = Callable[[Step], object]
_Run: TypeAlias = Callable[[], Awaitable[None]]


class _Key(NamedTuple):
    """A primary key without the user: its table, its name and its columns."""

    table: str
    name: str
    columns: list[str]

    @property
    def new_index(self) -> str:
        return self.table + _BY_USER


class _Reference(NamedTuple):
    """A foreign key without the user: its table, name, column, and what it names."""

    table: str
    name: str
    column: str
    target: str
    target_column: str


async def migrate(bind: AsyncEngine | str, *, progress: Progress | None = None) -> int:
    """Bring the tables of a database to the layout of this release, while they are in use.

    Call it again after an interruption: it goes on where it stopped. Without it, tables of an
    earlier layout keep working, except that they cannot be partitioned and that no search index can
    be added to them. A SQLite file needs no call, because opening it is enough.

    Args:
        bind: An engine, which the caller disposes of, or an address. Connect to the server itself
            rather than to a pooler.
        progress: Called before every step.

    Returns:
        The version of the layout.

    Raises:
        SchemaTooNew: A later release made the tables.
        StoreBusy: Another process is migrating, or a table stayed locked; call it again.
        StoreError: The database refused a step, for example for want of permission.
    """
    engine = open_engine(bind) if isinstance(bind, str) else bind
    try:
        await state_of(engine).ensure_schema(engine)
        if engine.dialect.name != "sqlite":
            await _Migration(engine, progress).run()
        return layout.VERSION
    except Exception as error:
        raise translated(error) or error from error
    finally:
        if isinstance(bind, str):
            await engine.dispose()


class _Migration:
    def __init__(self, engine: AsyncEngine, progress: Progress | None) -> None:
        self._engine, self._progress = engine, progress
        self._at_once = engine.execution_options(isolation_level="AUTOCOMMIT")

    async def run(self) -> None:
        """Do every step that is left. One process at a time."""
        async with self._at_once.connect() as guard:
            try:
                await _take_turn(guard)
                await self._run_steps()
            finally:
                await guard.invalidate()  # the lock ends with the connection

    async def _run_steps(self) -> None:
        steps = [*await self._steps(), ("write the version", self._finish)]
        for number, (name, step) in enumerate(steps):
            logger.info("migrating, step %d of %d: %s", number + 1, len(steps), name)
            if self._progress is not None:
                self._progress(Step(name, number, len(steps)))
            await step()

    async def _steps(self) -> list[tuple[str, _Run]]:
        if self._engine.dialect.name != "postgresql":
            return [(f"build the index {layout.EXPIRY.name}", self._build_expiry)]
        async with self._engine.connect() as on:
            keys, references = await _keys(on), await _references(on)
            texts = [*(await on.execute(_TEXT_USERS)).scalars()]
        return [
            *self._types(texts), *self._builds(keys), *self._extra_builds(),
            *self._refers(references), *self._swaps(keys),
        ]  # fmt: skip

    def _types(self, tables: list[str]) -> Iterator[tuple[str, _Run]]:
        """Give the user the same type everywhere, which changes the catalogue alone."""
        for table in tables:
            change = f"ALTER TABLE {table} ALTER COLUMN user_id TYPE varchar"
            yield f"change the type of the user in {table}", self._quickly(change)

    def _builds(self, keys: list[_Key]) -> Iterator[tuple[str, _Run]]:
        for key in keys:
            columns = ", ".join(["user_id", *key.columns])
            on = f"{key.table} ({columns})"
            yield f"build the index {key.new_index}", self._built("UNIQUE INDEX", key.new_index, on)

    def _extra_builds(self) -> Iterator[tuple[str, _Run]]:
        name, on = layout.EXPIRY.name, "memoryspace_record (expires_at)"
        yield (
            f"build the index {name}",
            self._built("INDEX", str(name), f"{on} WHERE expires_at IS NOT NULL"),
        )

    def _refers(self, references: list[_Reference]) -> Iterator[tuple[str, _Run]]:
        for each in references:
            new = f"{each.table}_{each.column}_user_fkey"
            alter = f"ALTER TABLE {each.table}"
            add = (
                f"{alter} ADD CONSTRAINT {new} FOREIGN KEY (user_id, {each.column}) "
                f"REFERENCES {each.target} (user_id, {each.target_column}) "
                "ON DELETE CASCADE NOT VALID"
            )
            yield f"refer from {each.table} by user", self._added(each.table, new, add)
            yield f"check {new}", self._quickly(f"{alter} VALIDATE CONSTRAINT {new}")
            yield f"drop {each.name}", self._quickly(f"{alter} DROP CONSTRAINT {each.name}")

    def _swaps(self, keys: list[_Key]) -> Iterator[tuple[str, _Run]]:
        for key in keys:
            swap = (
                f"ALTER TABLE {key.table} DROP CONSTRAINT {key.name}, "
                f"ADD CONSTRAINT {key.name} PRIMARY KEY USING INDEX {key.new_index}"
            )
            yield f"change the key of {key.table}", self._quickly(swap)
        drop = "DROP INDEX CONCURRENTLY IF EXISTS memoryspace_record_seq"
        yield "drop an index that the key replaces", self._alone(drop)

    def _built(self, kind: str, name: str, on: str) -> _Run:
        async def run() -> None:
            async with self._at_once.connect() as at:
                if await _is_built(at, name):
                    return
                await at.exec_driver_sql(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
                await at.exec_driver_sql(f"CREATE {kind} CONCURRENTLY {name} ON {on}")

        return run

    def _added(self, table: str, name: str, statement: str) -> _Run:
        async def run() -> None:
            async with self._engine.connect() as on:
                query = text("SELECT 1 FROM pg_constraint WHERE conrelid = to_regclass(:t) "
                             "AND conname = :n")  # fmt: skip
                there = (await on.execute(query, {"t": table, "n": name})).first()
            if there is None:
                await self._quickly(statement)()

        return run

    def _alone(self, statement: str) -> _Run:
        async def run() -> None:
            async with self._at_once.connect() as on:
                await on.exec_driver_sql(statement)

        return run

    def _quickly(self, statement: str) -> _Run:
        """Return a step that waits for a table's lock only briefly, again and again."""

        async def attempt() -> None:
            async with self._engine.begin() as on:
                await on.exec_driver_sql(f"SET LOCAL lock_timeout = {LOCK_MILLISECONDS}")
                await on.exec_driver_sql(statement)

        async def run() -> None:
            tries = Attempts(_BACKOFF)
            async for _ in tries:
                try:
                    await attempt()
                    break
                except DBAPIError as error:
                    if not isinstance(translated(error), StoreBusy):
                        raise
                    if tries.is_last:
                        raise StoreBusy(
                            f"a table stayed locked, so this is left to do: {statement}; try again"
                        ) from error

        return run

    async def _build_expiry(self) -> None:
        """Build the index on MySQL, whose writers go on meanwhile."""

        def build(on: Any) -> None:
            there = {each["name"] for each in inspect(on).get_indexes("memoryspace_record")}
            if layout.EXPIRY.name not in there:
                layout.EXPIRY.create(on)

        async with self._engine.begin() as on:
            await on.run_sync(build)

    async def _finish(self) -> None:
        async with self._engine.begin() as on, schema_lock(on):
            await on.run_sync(layout.set_version, layout.VERSION)


async def _take_turn(on: AsyncConnection) -> None:
    """Take the migration's lock without waiting, and outside of a transaction.

    Both a statement that waits and an open transaction would keep an index from being built.
    """
    if on.dialect.name == "postgresql":
        taken = await on.execute(text(f"SELECT pg_try_advisory_lock({MIGRATION_LOCK})"))
    else:
        taken = await on.execute(text(f"SELECT GET_LOCK('memoryspace-{MIGRATION_LOCK}', 0)"))
    if not taken.scalar():
        raise StoreBusy("another process is migrating this database; wait until it is done")


async def _keys(on: AsyncConnection) -> list[_Key]:
    return [_Key(*row) for row in await on.execute(_KEYS_WITHOUT_USER)]


async def _references(on: AsyncConnection) -> list[_Reference]:
    return [_Reference(*row) for row in await on.execute(_REFERENCES_WITHOUT_USER)]


async def _is_built(on: AsyncConnection, index: str) -> bool:
    query = text("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(:name)")
    return bool((await on.execute(query, {"name": index})).scalar())


# Our tables that the search path leads to and that have a user.
_OURS = """
    SELECT c.oid, c.relname FROM pg_class c
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'user_id' AND NOT a.attisdropped
    WHERE c.relname LIKE 'memoryspace\\_%' AND c.relkind IN ('r', 'p') AND NOT c.relispartition
    AND pg_table_is_visible(c.oid)
"""
_HAS_USER = """
    EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = k.conrelid
            AND a.attnum = ANY (k.conkey) AND a.attname = 'user_id')
"""
_KEYS_WITHOUT_USER = text(f"""
    SELECT o.relname, k.conname,
           array_agg(a.attname::text ORDER BY array_position(k.conkey, a.attnum))
    FROM ({_OURS}) o JOIN pg_constraint k ON k.conrelid = o.oid AND k.contype = 'p'
    JOIN pg_attribute a ON a.attrelid = o.oid AND a.attnum = ANY (k.conkey)
    WHERE NOT {_HAS_USER} GROUP BY 1, 2 ORDER BY 1
""")  # noqa: S608  # our own text
_REFERENCES_WITHOUT_USER = text(f"""
    SELECT o.relname, k.conname, a.attname, t.relname, b.attname
    FROM ({_OURS}) o JOIN pg_constraint k ON k.conrelid = o.oid AND k.contype = 'f'
    JOIN pg_attribute a ON a.attrelid = o.oid AND a.attnum = k.conkey[1]
    JOIN pg_class t ON t.oid = k.confrelid
    JOIN pg_attribute b ON b.attrelid = t.oid AND b.attnum = k.confkey[1]
    WHERE NOT {_HAS_USER} ORDER BY 1, 2
""")  # noqa: S608  # our own text
_TEXT_USERS = text(f"""
    SELECT o.relname FROM ({_OURS}) o JOIN pg_attribute a ON a.attrelid = o.oid
    WHERE a.attname = 'user_id' AND a.atttypid = 'text'::regtype ORDER BY 1
""")  # noqa: S608  # our own text
