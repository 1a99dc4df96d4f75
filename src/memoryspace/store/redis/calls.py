"""Sending scripts: waiting for a connection, trying again, and errors in our terms."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from redis.asyncio import ConnectionPool, Redis
from redis.exceptions import BusyLoadingError, MaxConnectionsError, RedisError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from ...errors import StoreError, StoreUnavailable

T = TypeVar("T")
MAX_ATTEMPTS = 10
BACKOFF_SECONDS = 0.005

_sources: dict[str, str] = {}
_scripts: WeakKeyDictionary[Redis, dict[str, Any]] = WeakKeyDictionary()
_Loop = asyncio.AbstractEventLoop
_seats: WeakKeyDictionary[ConnectionPool, WeakKeyDictionary[_Loop, asyncio.Semaphore]] = (
    WeakKeyDictionary()
)


def script(client: Redis, verb: str) -> Any:
    """Return a verb's script, which loads itself into the server when that does not know it."""
    known = _scripts.setdefault(client, {})
    if verb not in known:
        known[verb] = client.register_script(_source("prelude") + _source(verb))
    return known[verb]


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


def _source(name: str) -> str:
    if name not in _sources:
        _sources[name] = files(__package__).joinpath("lua", f"{name}.lua").read_text("utf-8")
    return _sources[name]
