"""``ServerLink``: one Redis server, within the connections of the client's pool."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from redis.asyncio import ConnectionPool, Redis
from redis.client import NEVER_DECODE
from redis.exceptions import ConnectionError as RedisConnectionError

from ...errors import StoreBusy, StoreUnavailable
from ...loops import PerLoop, heeding_cancellation
from ...retrying import Attempts, Backoff
from .faults import translated
from .link import REPEATED_WITHIN, Link, Replication
from .scripts import run_script

T = TypeVar("T")
_BACKOFF = Backoff(first=0.01, longest=2.56, attempts=10)
_ALONE = Replication()


class _Shared:
    """What all links on one pool share: the limit of connections, and what is known of prefixes."""

    def __init__(self, connections: int) -> None:
        self.slots = PerLoop(partial(asyncio.Semaphore, connections))
        self.earlier: dict[str, bool] = {}


_shared: WeakKeyDictionary[ConnectionPool, _Shared] = WeakKeyDictionary()


class ServerLink(Link):
    """Sends scripts and commands to one server. Never uses the client's own retries for changes.

    Args:
        client: The client; it stays the caller's.
        replication: How many replicas must confirm a change.
        clock: Returns seconds, to know how long a change may be sent again.
    """

    is_cluster = False

    def __init__(
        self,
        client: Redis,
        replication: Replication = _ALONE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        pool = client.connection_pool
        replication.fits(pool.connection_kwargs.get("socket_timeout"))
        if pool not in _shared:
            _shared[pool] = _Shared(pool.max_connections)
        self._client = client
        self._replication = replication
        self._clock = clock
        self._slots = _shared[pool].slots
        self.earlier = _shared[pool].earlier

    async def read(
        self, verb: str, keys: Sequence[str], arguments: Sequence[str | bytes] = ()
    ) -> Any:
        return await self._call(lambda: run_script(self._send, verb, keys, arguments), True)

    async def change(
        self, verb: str, keys: Sequence[str], arguments: Sequence[str | bytes] = ()
    ) -> Any:
        post = _LimitedSender(self._client, self._clock, self._replication)
        return await self._call(lambda: run_script(post, verb, keys, arguments), True)

    async def ask(self, key: str, *command: Any) -> Any:
        return await self._call(lambda: self._send(*command), True)

    async def tell(self, key: str, *command: Any) -> Any:
        post = _LimitedSender(self._client, self._clock, self._replication)
        return await self._call(lambda: post(*command), False)

    async def groups(self, keys: Sequence[str]) -> list[list[int]]:
        return [[*range(len(keys))]]

    async def persistence(self) -> list[Mapping[str, Any]]:
        ask: Callable[[], Awaitable[dict[str, Any]]] = partial(self._client.info, "persistence")
        return [await self._call(ask, True)]

    async def _call(self, send: Callable[[], Awaitable[T]], repeatable: bool) -> T:
        async with self._slots.get():
            with heeding_cancellation():
                return await call(send, repeatable=repeatable)

    async def _send(self, *command: Any) -> Any:
        """Send a command and return its reply as bytes, regardless of the client's settings.

        If the client decoded a whole reply at once, one broken record would hide all others.
        """
        send: Callable[..., Awaitable[Any]] = self._client.execute_command
        return await send(*command, **{NEVER_DECODE: True})


class _LimitedSender:
    """Sends commands without retries, and only for a limited time after the first one."""

    def __init__(self, client: Redis, clock: Callable[[], float], replication: Replication) -> None:
        self._client = client
        self._clock = clock
        self._replication = replication
        self._latest = math.inf

    async def __call__(self, *command: Any) -> Any:
        pool: Any = self._client.connection_pool
        connection = await pool.get_connection()
        try:
            now = self._clock()  # after connecting, which may have been slow
            if now > self._latest:
                raise RedisConnectionError("connected too late to send the command again")
            self._latest = min(self._latest, now + REPEATED_WITHIN)
            return await self._exchange(connection, command)
        finally:
            await pool.release(connection)

    async def _exchange(self, connection: Any, command: tuple[Any, ...]) -> Any:
        parse: Callable[..., Awaitable[Any]] = self._client.parse_response
        await connection.send_command(*command)
        reply = await parse(connection, command[0], **{NEVER_DECODE: True})
        if self._replication.replicas:
            wait = self._replication.command
            await connection.send_command(*wait)
            self._replication.check(await parse(connection, wait[0]))
        return reply


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
            trouble = translated(error)
            if trouble is None:
                raise
            is_busy = isinstance(trouble, StoreBusy)
            is_lost = isinstance(trouble, StoreUnavailable)
            if tries.is_last or not (is_busy or (is_lost and may_be_lost)):
                raise trouble from error
            may_be_lost = may_be_lost and not is_lost
    raise AssertionError("the loop above returns or raises")
