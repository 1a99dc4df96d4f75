"""``RedisStore``: records in Redis. Every verb is one script, so every verb is atomic."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Collection, Sequence
from importlib.resources import files
from typing import Any
from weakref import WeakKeyDictionary

from redis.asyncio import ConnectionPool, Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import MaxConnectionsError, RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

from ...errors import CorruptData, InvalidInput, NotSerializable, StoreError, StoreUnavailable
from ...events import EventStream
from ...record import EVERYTHING, Record, Scope, Where, as_marks
from ..codec import dump
from ..contract import Clock, Store, admit, session_of
from .wire import escaped, header_and_body, pieces_of, record_of, request_for, whose

logger = logging.getLogger(__name__)

MAX_ATTEMPTS = 10
BACKOFF_SECONDS = 0.005
COUNTER = "memoryspace:seq"

_Loop = asyncio.AbstractEventLoop
_seats: WeakKeyDictionary[ConnectionPool, WeakKeyDictionary[_Loop, asyncio.Semaphore]] = (
    WeakKeyDictionary()
)


class RedisStore(Store):
    """Records in a Redis server (not a cluster: one script may touch all of a user's sessions).

    ``client`` is a ``redis.asyncio.Redis``, which stays the caller's, or a URL, in which case the
    client is this store's own. ``ttl`` seconds after its last use a session is gone.
    """

    def __init__(
        self,
        client: Redis | str,
        *,
        prefix: str = "",
        ttl: int | None = None,
        clock: Clock = time.time,
        events: EventStream | None = None,
    ) -> None:
        super().__init__(clock=clock, events=events)
        self._owns_client = isinstance(client, str)
        self.client: Redis = Redis.from_url(client) if isinstance(client, str) else client
        self.prefix = prefix
        self.ttl = ttl

    @property
    def ttl(self) -> int | None:
        """Seconds an untouched session is kept; ``None`` for ever. May be changed at any time."""
        return self._ttl

    @ttl.setter
    def ttl(self, seconds: int | None) -> None:
        if seconds is not None and (not isinstance(seconds, int) or seconds <= 0):
            raise InvalidInput(f"a ttl is a whole number of seconds above 0, got {seconds!r}")
        self._ttl = seconds

    async def append(self, scope: Scope, records: Sequence[Record]) -> list[str]:
        """Add records at the end of a session; return the ids that were new."""
        session_of(scope)
        arguments = _arguments(admit(records))
        return _texts(await self._run("append", scope, EVERYTHING, arguments)) if records else []

    async def select(self, scope: Scope, where: Where = EVERYTHING) -> list[Record]:
        """Return the matching records in conversation order."""
        replies = await self._run("select", scope, where)
        found = []
        for piece in pieces_of(replies):
            try:
                found.append(record_of(piece))
            except (CorruptData, ValueError) as error:
                self.report_corrupt(*whose(scope.user, piece), error)
        return found

    async def replace(self, scope: Scope, where: Where, records: Sequence[Record]) -> list[str]:
        """Remove the matching records and append the given ones; return the ids added."""
        session_of(scope)
        return _texts(await self._run("replace", scope, where, _arguments(admit(records))))

    async def mark(
        self, scope: Scope, where: Where, *, add: Collection[str] = (), remove: Collection[str] = ()
    ) -> int:
        """Take marks off and put marks on the matching records; return how many changed."""
        change = {
            "add": sorted(as_marks(frozenset(add))),
            "remove": sorted(as_marks(frozenset(remove))),
        }
        return int(await self._run("mark", scope, where, **change))

    async def delete(self, scope: Scope, where: Where = EVERYTHING) -> list[str]:
        """Remove the matching records; return their ids."""
        return _texts(await self._run("delete", scope, where))

    async def count(self, scope: Scope, where: Where = EVERYTHING) -> int:
        """Return how many records match."""
        return int(await self._run("count", scope, where, only_kind=where.is_only_kind))

    async def close(self) -> None:
        """Close the client if this store made it; it connects anew when used again."""
        if self._owns_client:
            await self.client.aclose()

    async def _run(
        self, verb: str, scope: Scope, where: Where, arguments: Sequence[str] = (), **more: Any
    ) -> Any:
        """Send one script and its request; wait for a free connection instead of failing."""
        request = {
            "user": f"{self.prefix}user_id:{escaped(scope.user)}:",
            "now": repr(self.clock()),
            "where": request_for(where),
            **more,
        }
        if scope.session is not None:
            request["session"] = escaped(scope.session)
        if self.ttl is not None:
            request["ttl"] = self.ttl
        script = _script(self.client, verb)
        keys, full = [self.prefix + COUNTER], [dump(request), *arguments]
        async with _seat(self.client.connection_pool):
            for attempt in range(1, MAX_ATTEMPTS + 1):
                try:
                    return await script(keys=keys, args=full)
                except MaxConnectionsError as error:
                    if attempt == MAX_ATTEMPTS:
                        raise StoreUnavailable(f"no Redis connection came free: {error}") from error
                    await asyncio.sleep(random.uniform(0, BACKOFF_SECONDS * 2**attempt))
                except (RedisConnectionError, RedisTimeoutError, OSError) as error:
                    raise StoreUnavailable(
                        f"Redis cannot be reached: {error}; try again when it can"
                    ) from error
                except RedisError as error:
                    raise StoreError(f"Redis refused the operation: {error}") from error
        raise AssertionError("the loop above returns or raises")


_scripts: WeakKeyDictionary[Redis, dict[str, Any]] = WeakKeyDictionary()


def _script(client: Redis, verb: str) -> Any:
    known = _scripts.setdefault(client, {})
    if verb not in known:
        known[verb] = client.register_script(_source("prelude") + _source(verb))
    return known[verb]


_sources: dict[str, str] = {}


def _source(name: str) -> str:
    if name not in _sources:
        _sources[name] = files(__package__).joinpath("lua", f"{name}.lua").read_text("utf-8")
    return _sources[name]


def _seat(pool: ConnectionPool) -> asyncio.Semaphore:
    """Return what keeps our own calls from asking a pool for more connections than it has."""
    loops = _seats.setdefault(pool, WeakKeyDictionary())
    seats = pool.max_connections
    return loops.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(seats))


def _arguments(records: Sequence[Record]) -> list[str]:
    arguments: list[str] = []
    for record in records:
        try:
            arguments.extend(header_and_body(record))
        except NotSerializable as error:
            raise NotSerializable(f"record {record.id!r}: {error}") from error
    return arguments


def _texts(replies: Sequence[str | bytes]) -> list[str]:
    return [each if isinstance(each, str) else each.decode() for each in replies]
