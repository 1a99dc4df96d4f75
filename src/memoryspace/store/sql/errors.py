"""Translation of database errors into store errors. Messages never show the users' data."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from ...errors import StoreBusy, StoreError, StoreUnavailable

# PostgreSQL's SQLSTATEs (strings) and MySQL's error numbers.
_BUSY = {"40001", "40P01", "55P03", 1020, 1205, 1213}  # conflicts, deadlocks, lock timeouts
_UNREACHABLE = {"57P01", "57P02", "57P03", "53300", 1040, 1053, 1927, 2002, 2003, 2006, 2013, 2055}
_NO_TABLE = {"42P01", 1146}
_ROLLED_BACK = {1020, 1213}  # MySQL rolled back the whole transaction, not only the statement
_ENDED_BY_SIZE = {2006, 2013}


class OutcomeUnknown(StoreUnavailable):
    """A commit that may have happened. Never retried: the caller has to know."""


def translated(error: Exception) -> StoreError | None:
    """Return the matching ``StoreError``, or ``None`` if the error is not from the database.

    SQLAlchemy's messages show the parameters, which are the users' data. They are hidden in the
    original error from here on.
    """
    if isinstance(error, StoreError):
        return None
    for each in _chain(error):
        if isinstance(each, DBAPIError):
            each.hide_parameters = True
    if isinstance(error, PoolTimeoutError):
        return StoreBusy(f"no connection became free: {error}; try again or enlarge the pool")
    if any(code in _BUSY for code in _codes(error)) or "is locked" in _said(error):
        return StoreBusy(f"the database stayed locked by other writers: {_said(error)}")
    if _is_unreachable(error):
        return StoreUnavailable(_unreachable(error))
    if isinstance(error, DBAPIError | sqlite3.Error):
        return StoreError(f"the database refused the operation: {_said(error)}")
    return None


def is_missing_table(error: Exception) -> bool:
    """Return whether our tables are gone: dropped, or created in a transaction rolled back."""
    return any(code in _NO_TABLE for code in _codes(error)) or "no such table" in _said(error)


def has_undone_all(error: Exception) -> bool:
    """Return whether the database rolled back the whole transaction by itself."""
    return any(code in _ROLLED_BACK for code in _codes(error))


def _is_unreachable(error: Exception) -> bool:
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return True
    if any(code in _UNREACHABLE or str(code).startswith("08") for code in _codes(error)):
        return True
    # While connecting, asyncpg's and the system's own errors come through unwrapped.
    return isinstance(error, OSError) or type(error).__module__.startswith("asyncpg.")


def _unreachable(error: Exception) -> str:
    text = f"the database cannot be reached: {_said(error)}; try again when it is back"
    if any(code in _ENDED_BY_SIZE for code in _codes(error)):
        text += " (a message larger than max_allowed_packet ends the connection too)"
    return text


def _said(error: Exception) -> str:
    """Return the first line of the driver's message; the others may contain values."""
    words = str(error.orig if isinstance(error, DBAPIError) else error)
    return words.partition("\n")[0]


def _codes(error: Exception) -> Iterator[Any]:
    """Yield the codes of an error and of its causes.

    A deadlock can hide behind the rollback that failed after it.
    """
    for each in _chain(error):
        original = each.orig if isinstance(each, DBAPIError) else each
        yield getattr(original, "sqlstate", None)
        if isinstance(each, DBAPIError) and original is not None and original.args:
            yield original.args[0]


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
