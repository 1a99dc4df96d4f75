"""Sending scripts: waiting for a connection, trying again, and errors in our terms."""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import Awaitable, Callable
from functools import cache
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

from ...errors import StoreError, StoreUnavailable

T = TypeVar("T")
MAX_ATTEMPTS = 10
BACKOFF_SECONDS = 0.005

_Loop = asyncio.AbstractEventLoop
_seats: WeakKeyDictionary[ConnectionPool, WeakKeyDictionary[_Loop, asyncio.Semaphore]] = (
    WeakKeyDictionary()
)


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
    loops = _seats.setdefault(pool, WeakKeyDictionary())
    return loops.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(pool.max_connections))


async def call(send: Callable[[], Awaitable[T]]) -> T:
    """Send a command. A pool that others use up is waited for; a lost connection tried once more.

    A pooled connection may be dead because the server was restarted since it was last used.
    """
    for attempt in range(1, MAX_ATTEMPTS + 1):
        try:
            return await send()
        except (MaxConnectionsError, BusyLoadingError) as error:
            if attempt == MAX_ATTEMPTS:
                raise StoreUnavailable(f"Redis stayed too busy to answer: {error}") from error
        except (RedisConnectionError, RedisTimeoutError, OSError) as error:
            if attempt > 1:
                raise StoreUnavailable(
                    f"Redis cannot be reached: {error}; try again when it can"
                ) from error
        except RedisError as error:
            raise StoreError(f"Redis refused the operation: {error}") from error
        await asyncio.sleep(random.uniform(0, BACKOFF_SECONDS * 2**attempt))
    raise AssertionError("the loop above returns or raises")


@cache
def _script(verb: str) -> tuple[str, str]:
    folder = files(__package__).joinpath("lua")
    source = "".join(
        folder.joinpath(f"{name}.lua").read_text("utf-8") for name in ("prelude", verb)
    )
    return source, hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()
