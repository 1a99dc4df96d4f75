"""Sending scripts: waiting for a connection, trying again, and errors in our terms."""

from __future__ import annotations

import asyncio
import hashlib
import math
import random
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

T = TypeVar("T")
MAX_ATTEMPTS = 10
BACKOFF_SECONDS = 0.005
# A change may be sent once more so long after the first time, and its answer is remembered longer:
# what the second sending spends on the way must not outlast the server's memory of the first.
REPEATED_WITHIN = 20.0
REMEMBERED = 120
# What a verb's script is made of, each part on those before: a server reads all of it every time.
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

_seats: WeakKeyDictionary[ConnectionPool, PerLoop[asyncio.Semaphore]] = WeakKeyDictionary()


Send = Callable[..., Awaitable[Any]]


async def read(client: Redis, verb: str, keys: list[str], arguments: Sequence[str | bytes]) -> Any:
    """Run the script of a verb that changes nothing."""
    send = partial(send_raw, client)
    return await call(lambda: _run_script(send, verb, keys, arguments), repeatable=True)


async def change(
    client: Redis,
    verb: str,
    keys: list[str],
    arguments: Sequence[str | bytes],
    clock: Callable[[], float] = time.monotonic,
) -> Any:
    """Run the script of a verb that changes something; it happens once, whatever is lost.

    The second of the keys is where the script remembers its answer. A change whose reply is lost is
    sent once more and finds the answer there, unless so much time has passed that it might be
    forgotten: then it is not sent again.
    """
    send = _InTime(client, clock)
    return await call(lambda: _run_script(send, verb, keys, arguments), repeatable=True)


async def send_raw(client: Redis, *command: Any) -> Any:
    """Send a command and return its reply as bytes, whatever the client is set to.

    Decoding all of a reply at once would let one broken record hide the others.
    """
    send: Send = client.execute_command
    return await send(*command, **{NEVER_DECODE: True})


async def send_once(client: Redis, *command: Any) -> Any:
    """The same, without the client's own retries, which know nothing of what they repeat."""
    return await _InTime(client, time.monotonic)(*command)


class _InTime:
    """Sends commands, each once, until some time after the first."""

    def __init__(self, client: Redis, clock: Callable[[], float]) -> None:
        self._client = client
        self._clock = clock
        self._latest = math.inf

    async def __call__(self, *command: Any) -> Any:
        pool: Any = self._client.connection_pool
        connection = await pool.get_connection()
        try:
            now = self._clock()  # after connecting, which may have taken its time
            if now > self._latest:
                raise RedisConnectionError("the connection came too late to ask once more")
            self._latest = min(self._latest, now + REPEATED_WITHIN)
            await connection.send_command(*command)
            parse: Send = self._client.parse_response
            return await parse(connection, command[0], **{NEVER_DECODE: True})
        finally:
            await pool.release(connection)


async def _run_script(
    send: Send, verb: str, keys: list[str], arguments: Sequence[str | bytes]
) -> Any:
    """Run a verb's script; a server that does not know it yet is sent the whole of it."""
    source, digest = _script(verb)
    rest = (len(keys), *keys, *arguments)
    try:
        return await send("EVALSHA", digest, *rest)
    except NoScriptError:
        return await send("EVAL", source, *rest)


def seat(pool: ConnectionPool) -> asyncio.Semaphore:
    """Return what keeps our own calls from asking a pool for more connections than it has."""
    if pool not in _seats:
        _seats[pool] = PerLoop(partial(asyncio.Semaphore, pool.max_connections))
    return _seats[pool].get()


async def call(send: Callable[[], Awaitable[T]], *, repeatable: bool) -> T:
    """Send a command, waiting while the server or the pool is busy.

    A lost connection is tried once more if the command may be repeated: a pooled connection may be
    dead because the server was restarted since it was last used.
    """
    may_be_lost = repeatable
    for attempt in range(1, MAX_ATTEMPTS + 1):
        try:
            return await send()
        except Exception as error:
            trouble = _translated(error)
            if trouble is None:
                raise
            is_busy = isinstance(trouble, StoreBusy)
            is_lost = isinstance(trouble, StoreUnavailable)
            if attempt == MAX_ATTEMPTS or not (is_busy or (is_lost and may_be_lost)):
                raise trouble from error
            may_be_lost = may_be_lost and not is_lost
        await asyncio.sleep(random.uniform(0, BACKOFF_SECONDS * 2**attempt))
    raise AssertionError("the loop above returns or raises")


def _translated(error: Exception) -> StoreError | None:
    """Return the error in our terms, or ``None`` for what is not Redis's."""
    if isinstance(error, MaxConnectionsError | BusyLoadingError) or _runs_a_script(error):
        return StoreBusy(f"Redis stayed too busy to answer: {error}")
    if isinstance(error, RedisConnectionError | RedisTimeoutError | OSError) or _left_over(error):
        return StoreUnavailable(
            f"Redis cannot be reached: {error}; what was sent may or may not have happened, "
            f"try again when it can"
        )
    if "unknown command" in str(error).lower():
        return StoreError(f"this server runs no scripts ({error}); fakeredis needs fakeredis[lua]")
    return StoreError(f"Redis refused: {error}") if isinstance(error, RedisError) else None


def _runs_a_script(error: Exception) -> bool:
    return isinstance(error, RedisError) and str(error).startswith("BUSY ")


def _left_over(error: Exception) -> bool:
    """Tell whether a connection was opened in an event loop that is closed by now."""
    return isinstance(error, RuntimeError) and "loop is closed" in str(error)


@cache
def _script(verb: str) -> tuple[str, str]:
    folder = files(__package__).joinpath("lua")
    source = "\n".join(
        folder.joinpath(f"{name}.lua").read_text("utf-8") for name in (*PARTS[verb], verb)
    )
    return source, hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()
