"""``SideDatabase``: the data that an open-source mem0 memory keeps beside its vectors.

An SQLite database holds every text that a memory ever had, by the memory's id, and the last
messages of each conversation, by its scope (``run_id=…&user_id=…``). mem0's own deletion leaves
them and mem0 has no call to delete them, so the database is used directly, under mem0's lock. The
platform exposes no such data.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .calls import Ids

_BATCH = 500  # parameters of one statement


class SideDatabase:
    """The database beside a memory's vectors; empty if the client has none."""

    def __init__(self, client: Any) -> None:
        self._db = getattr(client, "db", None)

    def forget(self, ids: Ids, memory_ids: Sequence[str], *, messages: bool) -> int:
        """Delete the old texts of memories and, with ``messages``, the last messages of these ids.

        Return how many old versions there were.
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
        """Return how many last messages of these ids are left."""
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
    """Return the scopes of messages that contain all of these ids."""
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
