"""``SQLiteColdStorage``: the engine that is always available.

One connection owns the file (SQLite's exclusive locking mode): reads need no system calls for
locks, and a second process gets an error at once.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from ....errors import (
    CorruptData,
    MemorySpaceError,
    StoreBusy,
    StoreError,
    StoreUnavailable,
)
from .contract import ColdStorage, refuse_other

FORMAT = 1
_OURS = 0x4D53_434F  # "MSCO", in the header of our files

_INSERT = "INSERT INTO cold (key, frame) VALUES (?, ?) ON CONFLICT (key) DO NOTHING"
_SELECT = "SELECT frame FROM cold WHERE key = ?"
_KEYS = "SELECT key FROM cold WHERE key >= ? ORDER BY key LIMIT ?"


class SQLiteColdStorage(ColdStorage):
    """Values in one SQLite file and its ``-wal``.

    Args:
        path: The file.
        durable: Whether a write survives a power cut once it has returned.
        timeout: Seconds to wait for another process to close the file.
    """

    engine_errors = (sqlite3.Error,)

    def __init__(
        self, path: str | os.PathLike[str], *, durable: bool = True, timeout: float = 5.0
    ) -> None:
        self.path = Path(path).absolute()
        super().__init__(str(self.path), durable=durable)
        self._lock = threading.Lock()
        self._length: int | None = None  # counted on first use, then updated
        self._connection = self._connect(timeout)

    def _connect(self, timeout: float) -> sqlite3.Connection:
        try:
            connection = sqlite3.connect(
                self.path, timeout=timeout, isolation_level=None, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise self._explain(error) from error
        try:
            self._take(connection)
        except sqlite3.Error as error:
            connection.close()
            raise self._explain(error) from error
        except BaseException:
            connection.close()
            raise
        return connection

    def _take(self, connection: sqlite3.Connection) -> None:
        # Checked before anything is written: a foreign file stays as it is.
        self._refuse_foreign(connection)
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {'FULL' if self.durable else 'NORMAL'}")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("CREATE TABLE IF NOT EXISTS cold (key INTEGER PRIMARY KEY, frame BLOB)")
        connection.execute(f"PRAGMA application_id = {_OURS}")
        connection.execute(f"PRAGMA user_version = {FORMAT}")
        connection.execute("COMMIT")

    def _refuse_foreign(self, connection: sqlite3.Connection) -> None:
        (owner,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if owner != _OURS and (owner or version or tables):
            raise StoreError(f"{self.place} is a database of another program; choose another path")
        if version > FORMAT:
            raise StoreError(
                f"{self.place} has format {version}, this version of memoryspace reads up to "
                f"{FORMAT}; upgrade memoryspace"
            )

    def _put(self, frames: Sequence[tuple[int, bytes]]) -> None:
        with self._lock:
            new = self._change(lambda: self._insert(frames))
            self._recount(new)

    def _insert(self, frames: Sequence[tuple[int, bytes]]) -> int:
        new = self._connection.executemany(_INSERT, frames).rowcount
        if new < len(frames):  # some keys exist, or occur twice: with the same frame?
            for key, frame in frames:
                if self._connection.execute(_SELECT, (key,)).fetchone() != (frame,):
                    raise refuse_other(key)
        return new

    def _change(self, work: Callable[[], int]) -> int:
        """Run a write transaction. All writes go through here and happen whole or not at all."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            done = work()
            self._connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):  # SQLite may have rolled back by itself
                self._connection.execute("ROLLBACK")
            raise
        return done

    def _get(self, key: int) -> bytes | None:
        with self._lock:
            row = self._connection.execute(_SELECT, (key,)).fetchone()
        return None if row is None else _frame_of(row)

    def _get_many(self, keys: Sequence[int]) -> list[bytes | None]:
        with self._lock:
            rows = [self._connection.execute(_SELECT, (key,)).fetchone() for key in keys]
        return [None if row is None else _frame_of(row) for row in rows]

    def _remove(self, keys: Sequence[int]) -> int:
        rows = [(key,) for key in keys]
        delete = "DELETE FROM cold WHERE key = ?"
        with self._lock:
            gone = self._change(lambda: self._connection.executemany(delete, rows).rowcount)
            self._recount(-gone)
        return gone

    def _has(self, key: int) -> bool:
        query = "SELECT 1 FROM cold WHERE key = ?"
        with self._lock:
            return self._connection.execute(query, (key,)).fetchone() is not None

    def _count(self) -> int:
        with self._lock:
            if self._length is None:
                (self._length,) = self._connection.execute("SELECT count(*) FROM cold").fetchone()
            return int(self._length)

    def _recount(self, change: int) -> None:
        if self._length is not None:
            self._length += change

    def _keys_from(self, first: int, limit: int) -> list[int]:
        with self._lock:
            return [key for (key,) in self._connection.execute(_KEYS, (first, limit))]

    def _flush(self) -> None:
        if not self.durable:
            with self._lock:
                self._empty_wal()

    def _rewrite(self) -> None:
        """Let SQLite rebuild the file in one transaction, then empty the write-ahead log."""
        with self._lock:
            self._connection.execute("VACUUM")
            self._empty_wal()

    def _empty_wal(self) -> None:
        (busy, _, _) = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise StoreBusy(f"{self.place}-wal is still in use by another process; close that one")

    def _verify(self) -> None:
        with self._lock:
            self._length = None
            (answer,) = self._connection.execute("PRAGMA quick_check(1)").fetchone()
        if answer != "ok":
            raise CorruptData(f"{self.place} is damaged: {answer}; restore it from a backup")

    def _shut(self) -> None:
        with self._lock:
            self._connection.close()

    def _explain(self, error: Exception) -> MemorySpaceError:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        kind, advice = _MEANINGS.get(code, (StoreError, "see the message of SQLite"))
        return kind(f"{self.place}: {error}; {advice}")


_MEANINGS: dict[int, tuple[type[MemorySpaceError], str]] = {
    sqlite3.SQLITE_NOTADB: (CorruptData, "it is not a SQLite file; choose another path"),
    sqlite3.SQLITE_CORRUPT: (CorruptData, "restore it from a backup"),
    sqlite3.SQLITE_BUSY: (StoreBusy, "another process has it open; close that one first"),
    sqlite3.SQLITE_LOCKED: (StoreBusy, "another process has it open; close that one first"),
    sqlite3.SQLITE_FULL: (StoreUnavailable, "free disk space and try again"),
    sqlite3.SQLITE_IOERR: (StoreUnavailable, "check the disk, its free space and limits"),
    sqlite3.SQLITE_CANTOPEN: (StoreUnavailable, "make sure the folder exists and is writable"),
    sqlite3.SQLITE_READONLY: (StoreUnavailable, "make the file and its folder writable"),
    sqlite3.SQLITE_PERM: (StoreUnavailable, "make the file and its folder writable"),
}


def _frame_of(row: tuple[object]) -> bytes:
    """Return a frame; anything but a blob becomes an empty one, whose checksum is wrong."""
    (frame,) = row
    return frame if type(frame) is bytes else b""
