"""Tables of other programs, read without changing anything or trusting the file.

A SQLite file is opened read-only and with untrusted schema: only plain tables are read, so no view,
trigger or virtual table of the file runs.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ...errors import ImportRefused

MAX_VALUE = 64 << 20  # bytes
ROWS_AT_ONCE = 200

_SERVERS = ("postgresql", "postgres", "mysql", "mariadb")
_MAGIC = b"SQLite format 3\x00"

Row = Sequence[Any]


def is_server(source: str) -> bool:
    """Return whether a source is the address of an SQL server."""
    return "://" in source and source.split("+")[0].split(":")[0] in _SERVERS


def sqlite_path(source: str) -> Path:
    """Return the file that a path or a ``sqlite:///`` address names."""
    scheme, found, path = source.partition(":///")
    return Path(path if found and scheme.startswith("sqlite") else source).expanduser()


def is_sqlite(path: Path) -> bool:
    """Return whether a file is a SQLite database."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


async def rows(
    source: str, table: str, columns: Sequence[str], order: Sequence[str] = ()
) -> AsyncIterator[Row]:
    """Yield the rows of a table of a SQLite file or an SQL server, in order."""
    if is_server(source):
        async for row in _server_rows(source, table, columns, order):
            yield row
        return
    with closing(_Opened(sqlite_path(source))) as opened:
        cursor = await asyncio.to_thread(opened.select, table, columns, order)
        while batch := await asyncio.to_thread(opened.fetch, cursor):
            for row in batch:
                yield row


def tables_in(path: Path) -> set[str]:
    """Return the plain tables of a SQLite file."""
    with closing(_Opened(path)) as opened:
        return opened.tables()


class _Opened:
    """A SQLite file that is only read."""

    def __init__(self, path: Path) -> None:
        if not is_sqlite(path):
            raise ImportRefused(f"{path.name}: this is not a SQLite database")
        self._name = path.name
        how = "mode=ro" if _is_in_use(path) else "immutable=1"  # so no file appears beside it
        address = f"file:{quote(str(path.absolute()))}?{how}"
        self._open = sqlite3.connect(address, uri=True, check_same_thread=False)
        self._open.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE)
        for pragma in ("trusted_schema=OFF", "query_only=ON", "cell_size_check=ON"):
            self._open.execute(f"PRAGMA {pragma}")

    def close(self) -> None:
        self._open.close()

    def tables(self) -> set[str]:
        query = "SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0"
        return {name for (name,) in self._asked(query)}

    def select(self, table: str, columns: Sequence[str], order: Sequence[str]) -> sqlite3.Cursor:
        if table not in self.tables():
            raise ImportRefused(f"{self._name}: it has no table {table!r}")
        wanted = ", ".join(f'"{each}"' for each in columns)  # names of our own, none from outside
        by = ", ".join(f'"{each}"' for each in order)
        query = f'SELECT {wanted} FROM "{table}"' + (f" ORDER BY {by}" if by else "")  # noqa: S608
        return self._asked(query)

    def fetch(self, cursor: sqlite3.Cursor) -> list[Row]:
        try:
            return cursor.fetchmany(ROWS_AT_ONCE)
        except sqlite3.Error as error:
            raise ImportRefused(f"{self._name}: the database is damaged ({error})") from None

    def _asked(self, query: str) -> sqlite3.Cursor:
        try:
            return self._open.execute(query)
        except sqlite3.Error as error:
            raise ImportRefused(f"{self._name}: it cannot be read ({error})") from None


def _is_in_use(path: Path) -> bool:
    """Return whether what was written last is still in a file beside the database."""
    return any(Path(f"{path}{end}").exists() for end in ("-wal", "-journal"))


async def _server_rows(
    address: str, table: str, columns: Sequence[str], order: Sequence[str]
) -> AsyncIterator[Row]:
    from sqlalchemy import column, select
    from sqlalchemy import table as named

    from ...store.sql.opening import open_engine

    own: list[Any] = [column(each) for each in columns]
    query = select(*own).select_from(named(table)).order_by(*map(column, order))
    engine = open_engine(address)
    try:
        async with engine.connect() as connection:
            result = await connection.stream(query)
            async for row in result:
                yield tuple(row)
    finally:
        await engine.dispose()
