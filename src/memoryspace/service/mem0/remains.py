"""What an open-source memory of mem0 writes beside its vectors, which its own deletion leaves.

An SQLite database holds every text that a memory ever had, by the memory's id, and the last
messages of each conversation, by its scope (``run_id=…&user_id=…``). The platform shows no such
thing. mem0 has no call to forget them, so the database is spoken to under mem0's own lock.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .calls import Ids

_BATCH = 500  # parameters of one statement


class Remains:
    """The database beside a memory's vectors; nothing is in it if the client has none."""

    def __init__(self, client: Any) -> None:
        self._db = getattr(client, "db", None)

    def forget(self, ids: Ids, memory_ids: Sequence[str], *, messages: bool) -> int:
        """Forget the old texts of memories and, if asked, the last messages of these ids' scopes.

        Returns how many old versions there were.
        """
        with self._open() as connection:
            if connection is None:
                return 0
            if messages:
                for scope in _scopes(connection, ids):
                    connection.execute("DELETE FROM messages WHERE session_scope = ?", (scope,))
            return sum(
                _forget_texts(connection, memory_ids[start : start + _BATCH])
                for start in range(0, len(memory_ids), _BATCH)
            )

    def messages(self, ids: Ids) -> int:
        """Return how many last messages of these ids' scopes are still there."""
        with self._open() as connection:
            if connection is None:
                return 0
            counted = "SELECT count(*) FROM messages WHERE session_scope = ?"
            scopes = _scopes(connection, ids)
            return sum(int(connection.execute(counted, (each,)).fetchone()[0]) for each in scopes)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection | None]:
        connection, lock = getattr(self._db, "connection", None), getattr(self._db, "_lock", None)
        if not isinstance(connection, sqlite3.Connection) or lock is None:
            yield None
            return
        with lock, connection:
            yield connection


def _forget_texts(connection: sqlite3.Connection, memory_ids: Sequence[str]) -> int:
    if not _has(connection, "history"):
        return 0
    chosen = f"memory_id IN ({', '.join('?' * len(memory_ids))})"
    counted = f"SELECT count(*) FROM history WHERE event = 'UPDATE' AND {chosen}"  # noqa: S608  # question marks only
    versions = int(connection.execute(counted, memory_ids).fetchone()[0])
    connection.execute(f"DELETE FROM history WHERE {chosen}", memory_ids)  # noqa: S608  # the same
    return versions


def _scopes(connection: sqlite3.Connection, ids: Ids) -> list[str]:
    """Return the scopes of messages that name all these ids, whatever else they name."""
    if not _has(connection, "messages"):
        return []
    wanted = {f"{key}={_escaped(value)}" for key, value in ids.items()}
    rows = connection.execute("SELECT DISTINCT session_scope FROM messages").fetchall()
    return [scope for (scope,) in rows if wanted <= set(str(scope).split("&"))]


def _has(connection: sqlite3.Connection, table: str) -> bool:
    asked = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
    return connection.execute(asked, (table,)).fetchone() is not None


def _escaped(value: str) -> str:
    return value.replace("%", "%25").replace("&", "%26").replace("=", "%3D")
