"""Sending scripts: waiting for a connection, trying again, and errors in our terms."""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import Awaitable, Callable
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
# What a verb's script is made of, each part on those before: a server reads all of it every time.
_CHOOSING = ("keys", "choosing", "paging", "lifetime")
PARTS = {
    "append": ("keys", "lifetime", "adding"),
    "select": (*_CHOOSING, "sending"),
    "replace": (*_CHOOSING, "adding", "removing"),
    "mark": _CHOOSING,
    "delete": (*_CHOOSING, "removing"),
    "count": _CHOOSING,
    "sessions": ("keys",),
    "changes": ("keys", "choosing", "sending"),
}

_seats: WeakKeyDictionary[ConnectionPool, PerLoop[asyncio.Semaphore]] = WeakKeyDictionary()


async def run_script(client: Redis, verb: str, keys: list[str], arguments: list[str]) -> Any:
    """Run a verb's script; a server that does not know it yet is sent the whole of it."""
    source, digest = _script(verb)
    rest = (len(keys), *keys, *arguments)
    try:
        return await send_raw(client, "EVALSHA", digest, *rest)
    except NoScriptError:
        return await send_raw(client, "EVAL", source, *rest)


async def send_raw(client: Redis, *command: Any) -> Any:
    """Send a command and return its reply as bytes, whatever the client is set to.

    Decoding all of a reply at once would let one broken record hide the others.
    """
    send: Callable[..., Awaitable[Any]] = client.execute_command
    return await send(*command, **{NEVER_DECODE: True})


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
    for attempt in range(1, MAX_ATTEMPTS + 1):
        try:
            return await send()
        except Exception as error:
            trouble = _translated(error)
            if trouble is None:
                raise
            is_busy = isinstance(trouble, StoreBusy)
            is_lost = isinstance(trouble, StoreUnavailable) and repeatable and attempt == 1
            if attempt == MAX_ATTEMPTS or not (is_busy or is_lost):
                raise trouble from error
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
