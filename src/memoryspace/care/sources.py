"""What can be copied into a line of a backup: a memory space, or a SQLite database."""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Literal

from ..errors import CorruptData, InvalidInput, StoreBusy
from ..kernel import MemoryManager
from ..kernel.durable.lines import Span, begin_line, extend_line
from ..store import SpaceStore, Store
from .manifest import Progress

DATABASE = "database.sqlite"
_PATIENCE = 60.0  # seconds to wait for a writer that holds a lock


class Source(ABC):
    """Something to be copied while it is in use."""

    kind: Literal["space", "sqlite"]

    @property
    @abstractmethod
    def folder(self) -> Path | None:
        """The folder that it owns, where no backup may be."""

    @abstractmethod
    def begin(self, line: Path, tell: Progress) -> Span:
        """Copy everything into an empty folder."""

    @abstractmethod
    def extend(self, line: Path, span: Span, tell: Progress) -> Span | None:
        """Add what is new to a folder; ``None`` if everything has to be copied."""


class SpaceSource(Source):
    """A memory space."""

    kind = "space"

    def __init__(self, manager: MemoryManager) -> None:
        self._engine = manager.engine

    @property
    def folder(self) -> Path | None:
        """The folder of the space."""
        opened = self._engine.folder
        return None if opened is None else opened.path.absolute()

    def begin(self, line: Path, tell: Progress) -> Span:
        """Copy the space with its past."""
        return begin_line(self._engine, line, tell)

    def extend(self, line: Path, span: Span, tell: Progress) -> Span | None:
        """Add the changes made since."""
        return extend_line(self._engine, line, span, tell)


class DatabaseSource(Source):
    """A SQLite database. Its backup is a snapshot: writers go on, and it never starts over."""

    kind = "sqlite"

    def __init__(self, file: Path, clock: Callable[[], float]) -> None:
        self._file = file
        self._clock = clock

    @property
    def folder(self) -> Path | None:
        """None: a database is a file among others."""
        return None

    def begin(self, line: Path, tell: Progress) -> Span:
        """Copy the database. What is erased meanwhile counts as erased later."""
        now = self._clock()
        tell("database", 0, 1)
        copy_database(self._file, line / DATABASE)
        tell("database", 1, 1)
        return Span(0, now, 0, now)

    def extend(self, line: Path, span: Span, tell: Progress) -> Span | None:
        """Return None: a snapshot is whole."""
        return None


def source_of(store: Store) -> Source:
    """Return what to copy of a store; ``InvalidInput`` says what to use for other stores."""
    if isinstance(store, SpaceStore):
        return SpaceSource(store.space)
    file = getattr(store, "file", None)
    if isinstance(file, Path):
        if not file.exists():
            raise InvalidInput(f"there is no database {file} yet; write something first")
        return DatabaseSource(file, store.clock)
    raise InvalidInput(
        f"a {type(store).__name__} cannot be backed up into a folder: use the tools of its "
        "database (pg_dump, mysqldump, redis-cli --rdb), or export it"
    )


def copy_database(source: Path, target: Path) -> None:
    """Copy a SQLite database that may be in use, and verify the copy."""
    try:
        with (
            closing(sqlite3.connect(source, timeout=_PATIENCE)) as reading,
            closing(sqlite3.connect(target)) as writing,
        ):
            reading.backup(writing)
            writing.execute("PRAGMA journal_mode = DELETE")
            problems = check_database(writing)
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, 6):
            raise StoreBusy(f"{source} is locked by a writer; back up again later") from error
        raise CorruptData(f"{source} cannot be copied: {error}; examine it") from error
    if problems:
        raise CorruptData(f"{source} is damaged: {problems[0]}; restore an earlier backup")


def check_database(connection: sqlite3.Connection) -> list[str]:
    """Return what SQLite finds wrong with a database."""
    rows = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(10)")]
    return [] if rows == ["ok"] else rows
