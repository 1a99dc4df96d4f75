"""Running scripts on a Redis server: connection limits, retries, and error translation."""

from __future__ import annotations

import asyncio
import hashlib
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import cache, partial
from importlib.resources import files
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from redis.asyncio import ConnectionPool, Redis
from redis.client import NEVER_DECODE
from redis.exceptions import (
    BusyLoadingError,
    MaxConnectionsError,
    NoScriptError,
    RedisError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from ...errors import StoreBusy, StoreError, StoreUnavailable
from ...loops import PerLoop
from ...retrying import Attempts, Backoff

T = TypeVar("T")
_BACKOFF = Backoff(first=0.01, longest=2.56, attempts=10)
# Within this time a change may be sent again. Its answer is stored for longer, so that a second
# request that is slow to arrive still finds the answer to the first.
REPEATED_WITHIN = 20.0
REMEMBERED = 120
# The parts of each script. A part may use those before it. The server parses the whole script every
# time, so each has only what it needs.
_CHOOSING = ("keys", "choosing", "paging", "lifetime")
PARTS = {
    "append": ("keys", "lifetime", "adding", "once"),
    "select": (*_CHOOSING, "sending"),
    "replace": (*_CHOOSING, "adding", "removing", "once"),
    "mark": (*_CHOOSING, "once"),
    "delete": (*_CHOOSING, "removing", "once"),
    "count": _CHOOSING,
    "sessions": ("keys",),
    "users": ("keys",),
    "usage": ("keys",),
    "listing": ("keys",),
    "changes": ("keys", "choosing", "sending"),
    "read_vectors": ("keys", "vectors"),
    "put_vectors": ("keys", "vectors"),
    "list_vectors": ("keys", "vectors"),
    "drop_vectors": ("keys", "vectors"),
}

_slots: WeakKeyDictionary[ConnectionPool, PerLoop[asyncio.Semaphore]] = WeakKeyDictionary()


Send = Callable[..., Awaitable[Any]]


async def read(client: Redis, verb: str, keys: list[str], arguments: Sequence[str | bytes]) -> Any:
    """Run a read-only script."""
    send = partial(send_raw, client)
    return await call(lambda: _run_script(send, verb, keys, arguments), repeatable=True)


async def change(
    client: Redis,
    verb: str,
    keys: list[str],
    arguments: Sequence[str | bytes],
    clock: Callable[[], float] = time.monotonic,
) -> Any:
    """Run a script that changes data. The change happens once, even if a reply is lost.

    The script stores its answer under the second key. If the reply is lost, the script is sent once
    more and finds that answer. It is not sent again after ``REPEATED_WITHIN`` seconds, when the
    answer might be gone.
    """
    send = _LimitedSender(client, clock)
    return await call(lambda: _run_script(send, verb, keys, arguments), repeatable=True)


async def send_raw(client: Redis, *command: Any) -> Any:
    """Send a command and return its reply as bytes, regardless of the client's settings.

    If the client decoded a whole reply at once, one broken record would hide all others.
    """
    send: Send = client.execute_command
    return await send(*command, **{NEVER_DECODE: True})


async def send_once(client: Redis, *command: Any) -> Any:
    """Like ``send_raw``, without the client's own retries, which could repeat a change."""
    return await _LimitedSender(client, time.monotonic)(*command)


class _LimitedSender:
    """Sends commands without retries, and only for a limited time after the first one."""

    def __init__(self, client: Redis, clock: Callable[[], float]) -> None:
        self._client = client
        self._clock = clock
        self._latest = math.inf

    async def __call__(self, *command: Any) -> Any:
        pool: Any = self._client.connection_pool
        connection = await pool.get_connection()
        try:
            now = self._clock()  # after connecting, which may have been slow
            if now > self._latest:
                raise RedisConnectionError("connected too late to send the command again")
            self._latest = min(self._latest, now + REPEATED_WITHIN)
            await connection.send_command(*command)
            parse: Send = self._client.parse_response
            return await parse(connection, command[0], **{NEVER_DECODE: True})
        finally:
            await pool.release(connection)


async def _run_script(
    send: Send, verb: str, keys: list[str], arguments: Sequence[str | bytes]
) -> Any:
    """Run a script by its digest; send the source if the server does not have it yet."""
    source, digest = _script(verb)
    rest = (len(keys), *keys, *arguments)
    try:
        return await send("EVALSHA", digest, *rest)
    except NoScriptError:
        return await send("EVAL", source, *rest)


def connection_slot(pool: ConnectionPool) -> asyncio.Semaphore:
    """Return the semaphore that limits our calls to the number of connections in a pool."""
    if pool not in _slots:
        _slots[pool] = PerLoop(partial(asyncio.Semaphore, pool.max_connections))
    return _slots[pool].get()


async def call(send: Callable[[], Awaitable[T]], *, repeatable: bool) -> T:
    """Send a command; retry with backoff while the server or the pool is busy.

    If ``repeatable``, also retry once after a lost connection: the server may have restarted since
    a pooled connection was last used.
    """
    may_be_lost, tries = repeatable, Attempts(_BACKOFF)
    async for _ in tries:
        try:
            return await send()
        except Exception as error:
            trouble = _translated(error)
            if trouble is None:
                raise
            is_busy = isinstance(trouble, StoreBusy)
            is_lost = isinstance(trouble, StoreUnavailable)
            if tries.is_last or not (is_busy or (is_lost and may_be_lost)):
                raise trouble from error
            may_be_lost = may_be_lost and not is_lost
    raise AssertionError("the loop above returns or raises")


def _translated(error: Exception) -> StoreError | None:
    """Return the matching ``StoreError``, or ``None`` if the error is not from Redis."""
    if isinstance(error, MaxConnectionsError | BusyLoadingError) or _runs_a_script(error):
        return StoreBusy(f"Redis stayed busy: {error}; try again later")
    if isinstance(error, RedisConnectionError | RedisTimeoutError | OSError) or _left_over(error):
        return StoreUnavailable(
            f"Redis cannot be reached: {error}; the call may or may not have happened, "
            f"try again when the server is back"
        )
    if "unknown command" in str(error).lower():
        return StoreError(
            f"this server cannot run scripts ({error}); fakeredis needs fakeredis[lua]"
        )
    return (
        StoreError(f"Redis refused the command: {error}") if isinstance(error, RedisError) else None
    )


def _runs_a_script(error: Exception) -> bool:
    return isinstance(error, RedisError) and str(error).startswith("BUSY ")


def _left_over(error: Exception) -> bool:
    """Return whether the connection belongs to an event loop that is closed."""
    return isinstance(error, RuntimeError) and "loop is closed" in str(error)


@cache
def _script(verb: str) -> tuple[str, str]:
    folder = files(__package__).joinpath("lua")
    source = "\n".join(
        folder.joinpath(f"{name}.lua").read_text("utf-8") for name in (*PARTS[verb], verb)
    )
    return source, hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()
