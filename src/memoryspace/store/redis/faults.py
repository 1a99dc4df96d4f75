"""What went wrong at a Redis server, as errors of this package."""

from __future__ import annotations

from redis.exceptions import (
    AskError,
    BusyLoadingError,
    ClusterDownError,
    MaxConnectionsError,
    ReadOnlyError,
    RedisClusterException,
    RedisError,
    TryAgainError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from ...errors import StoreBusy, StoreError, StoreUnavailable

TROUBLE = (RedisError, RedisClusterException, OSError)  # whatever the client raises
UNKNOWN = "the call may or may not have happened"


def is_busy(error: Exception) -> bool:
    """Return whether the server or the pool refused a command for now, without running it."""
    return isinstance(error, MaxConnectionsError | BusyLoadingError) or _says(error, "BUSY ")


def is_lost(error: Exception) -> bool:
    """Return whether the reply is lost, so that the command may or may not have run."""
    lost = RedisConnectionError | RedisTimeoutError | OSError | TimeoutError
    return isinstance(error, lost) or _left_over(error) or _says(error, "UNBLOCKED")


def is_between_servers(error: Exception) -> bool:
    """Return whether a cluster refused a command, without running it, because it is changing."""
    changing = ClusterDownError | TryAgainError | ReadOnlyError | RedisClusterException
    return isinstance(error, changing)


def translated(error: Exception) -> StoreError | None:
    """Return the matching ``StoreError``, or ``None`` if the error is not from Redis."""
    if is_busy(error):
        return StoreBusy(f"Redis stayed busy: {error}; try again later")
    if is_lost(error):
        return StoreUnavailable(
            f"Redis cannot be reached: {error}; {UNKNOWN}, try again when the server is back"
        )
    if is_between_servers(error):
        return StoreUnavailable(
            f"Redis does not serve this user now: {error}; nothing has happened, "
            "try again when the server or the cluster is well"
        )
    if isinstance(error, AskError):  # MovedError is one
        return StoreError(
            f"this server is one of a cluster ({error}); use a RedisCluster client or an address "
            "that begins with redis+cluster://"
        )
    if "unknown command" in str(error).lower():
        return StoreError(
            f"this server cannot run scripts ({error}); fakeredis needs fakeredis[lua]"
        )
    return (
        StoreError(f"Redis refused the command: {error}") if isinstance(error, RedisError) else None
    )


def _says(error: Exception, code: str) -> bool:
    return isinstance(error, RedisError) and str(error).startswith(code)


def _left_over(error: Exception) -> bool:
    """Return whether the connection belongs to an event loop that is closed."""
    return isinstance(error, RuntimeError) and "loop is closed" in str(error)
