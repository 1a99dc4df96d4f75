"""``RedisStore``: records in Redis. Every verb is one script, so every verb is atomic."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from typing import Any

from redis.asyncio import Redis

from ...errors import CorruptData, InvalidInput, NotSerializable
from ...events import EventStream
from ...record import EVERYTHING, Record, Scope, Where, as_marks
from ..codec import dump
from ..contract import Changes, Clock, Store, admit, session_of
from .calls import call, run_script, seat
from .wire import (
    as_pattern,
    escaped,
    header_and_body,
    kept_of,
    pieces_of,
    record_of,
    request_for,
    states_of,
    unescaped,
    whose,
)

COUNTER = "memoryspace:seq"
SCANNED = 1000  # keys that are looked at in one call
MAX_RECORDS = 100_000  # in one call; a server takes no more than a million arguments

# Sent once more when the reply is lost. The others might undo what somebody else did meanwhile.
REPEATABLE = {"append", "select", "count", "sessions", "changes"}
MAX_TTL = 10 * 365 * 24 * 60 * 60


class RedisStore(Store):
    """Records in a Redis server (not a cluster: one script may touch all of a user's sessions).

    ``client`` is a ``redis.asyncio.Redis``, which stays the caller's, or a URL, in which case the
    client is this store's own. ``ttl`` seconds after its last use a session is gone.

    An ``append`` whose reply is lost is sent once more. That never doubles a record; the ids it
    returns are then those the repetition added. Other changes are not repeated. The server must not
    evict keys (``maxmemory-policy noeviction``, its default), or a session may lose a part.
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
        if seconds is not None and (type(seconds) is not int or not 0 < seconds <= MAX_TTL):
            raise InvalidInput(
                f"a ttl is a whole number of seconds from 1 to {MAX_TTL}, got {seconds!r}"
            )
        self._ttl = seconds

    async def append(self, scope: Scope, records: Sequence[Record]) -> list[str]:
        session_of(scope)
        arguments = _arguments(admit(records))
        if not arguments:
            return []
        return _texts(await self._run("append", scope, EVERYTHING, arguments))

    async def select(self, scope: Scope, where: Where = EVERYTHING) -> list[Record]:
        return self._records(scope.user, await self._run("select", scope, where))

    async def replace(
        self, scope: Scope, where: Where, records: Sequence[Record], *, if_found: bool = False
    ) -> list[str]:
        session_of(scope)
        arguments = _arguments(admit(records))
        return _texts(await self._run("replace", scope, where, arguments, if_found=if_found))

    async def mark(
        self, scope: Scope, where: Where, *, add: Collection[str] = (), remove: Collection[str] = ()
    ) -> int:
        change = {
            "add": sorted(as_marks(frozenset(add))),
            "remove": sorted(as_marks(frozenset(remove))),
        }
        return int(await self._run("mark", scope, where, **change))

    async def delete(self, scope: Scope, where: Where = EVERYTHING) -> list[str]:
        return _texts(await self._run("delete", scope, where))

    async def count(self, scope: Scope, where: Where = EVERYTHING) -> int:
        return int(await self._run("count", scope, where, only_kind=where.is_only_kind))

    async def sessions(self, user: str) -> list[str]:
        return sorted(map(unescaped, _texts(await self._run("sessions", Scope(user), EVERYTHING))))

    async def users(self) -> list[str]:
        """Return who has anything here, in the order of their names; walks through all keys."""
        head, tail = f"{self.prefix}user_id:", ":sessions"
        keys = await call(lambda: self._keys(f"{as_pattern(head)}*{tail}"), repeatable=True)
        own = (key[len(head) : -len(tail)] for key in keys)
        return sorted(unescaped(user) for user in own if ":" not in user)

    async def changes(self, user: str, state: Any = None) -> Changes:
        known: dict[str, tuple[str, str]] = {} if state is None else state
        said = await self._run("changes", Scope(user), EVERYTHING, known=known)
        now, records = states_of(said[0]), self._records(user, said[2])
        records.sort(key=lambda record: record.seq)
        gone = frozenset(map(unescaped, known.keys() - now.keys()))
        return Changes(now, records, kept_of(said[1]), gone)

    async def close(self) -> None:
        """Close the client if this store made it; it connects anew when used again."""
        if self._owns_client:
            await self.client.aclose()

    async def _keys(self, pattern: str) -> set[str]:
        found = [key async for key in self.client.scan_iter(pattern, count=SCANNED)]
        return {key if isinstance(key, str) else key.decode() for key in found}

    def _records(self, user: str, replies: Sequence[bytes]) -> list[Record]:
        found = []
        for piece in pieces_of(replies):
            try:
                found.append(record_of(piece))
            except (CorruptData, ValueError) as error:
                self.report_corrupt(*whose(user, piece), error)
        return found

    async def _run(
        self, verb: str, scope: Scope, where: Where, arguments: Sequence[str] = (), **more: Any
    ) -> Any:
        """Run one script on one request."""
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
        keys, texts = [self.prefix + COUNTER], [dump(request), *arguments]
        async with seat(self.client.connection_pool):
            return await call(
                lambda: run_script(self.client, verb, keys, texts), repeatable=verb in REPEATABLE
            )


def _arguments(records: Sequence[Record]) -> list[str]:
    if len(records) > MAX_RECORDS:
        raise InvalidInput(f"{len(records)} records at once are too many: {MAX_RECORDS} at most")
    arguments: list[str] = []
    for record in records:
        try:
            arguments.extend(header_and_body(record))
        except NotSerializable as error:
            raise NotSerializable(f"record {record.id!r}: {error}") from error
    return arguments


def _texts(replies: Sequence[bytes]) -> list[str]:
    return [each.decode() for each in replies]
