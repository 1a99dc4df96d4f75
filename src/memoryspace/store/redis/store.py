"""``RedisStore``: records in Redis. Every operation is one script, and therefore atomic."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from ...errors import (
    CorruptData,
    InvalidInput,
    NotSerializable,
    StoreError,
    StoreUnavailable,
)
from ...events import EventStream
from ...record import EVERYTHING, Record, Scope, Where, as_marks
from ..codec import dump
from ..contract import Changes, Clock, Store, admit, session_of, state_in
from ..remains import Remainder
from ..users import USERS_AT_ONCE, Usage, UserPage, checked_limit, cursor_after, user_before
from ..vectors import Kept, Place, check_space, check_vectors
from .client import Client, client_at, link_to, replication_in
from .layout import (
    checked_prefix,
    escaped,
    keys_to_change,
    keys_to_read,
    slot_of,
    tag_of,
    unescaped,
)
from .link import REMEMBERED, Replication
from .listing import page_of_users
from .migrating import EarlierLayout
from .remaining import remains_of
from .wire import (
    header_and_body,
    identity_of,
    kept_of,
    pieces_of,
    record_of,
    request_for,
    states_of,
)

T = TypeVar("T")
MAX_RECORDS = 100_000  # per call; a server accepts at most a million arguments

CHANGING = {"append", "replace", "mark", "delete"}
VECTORS_AT_ONCE = 500  # per script, so that other clients do not wait long
MAX_TTL = 10 * 365 * 24 * 60 * 60


class RedisStore(Store):
    """A store in a Redis or Valkey server, or in a cluster of them.

    All keys of a user are in one slot of a cluster. If the reply to a change is lost, the store
    sends it again and it still happens only once: the server stores its answer for two minutes. The
    client's own retries are not used for changes. A cluster that is failing over or moving slots is
    waited for, up to 20 seconds. The servers must not evict keys (``maxmemory-policy noeviction``,
    their default), or sessions may lose parts.

    Replication is asynchronous: a primary that fails may take the changes of its last moments with
    it. With ``wait_replicas`` a change is acknowledged only when so many replicas have it.

    Args:
        client: A ``redis.asyncio.Redis`` or ``redis.asyncio.cluster.RedisCluster``, which the
            caller closes, or an address (``redis://…``, ``redis+cluster://host:port,host:port``),
            for which the store creates a client and closes it.
        prefix: A prefix for every key.
        ttl: Delete a session this many seconds after its last use; ``None`` to keep it.
        wait_replicas: How many replicas must have a change before it is acknowledged. In an address
            it is an option: ``?wait_replicas=1``.
        wait_timeout: How many seconds to wait for them. Below it, ``NotReplicated`` is raised.
        clock: Returns the current time in seconds since the epoch.
        events: The stream to emit events on; a new one by default.

    Raises:
        InvalidInput: The address, the ``prefix``, the ``ttl`` or a wait is unusable.

    Example::

        async with RedisStore("redis://localhost:6379/0", ttl=86_400) as store:
            await store.append(Scope("alice", "s1"), [Record("r1", "Tea.", kind="note")])
    """

    def __init__(
        self,
        client: Client | str,
        *,
        prefix: str = "",
        ttl: int | None = None,
        wait_replicas: int = 0,
        wait_timeout: float = 1.0,
        clock: Clock = time.time,
        events: EventStream | None = None,
    ) -> None:
        super().__init__(clock=clock, events=events)
        self._owns_client = isinstance(client, str)
        replication = Replication(wait_replicas, wait_timeout)
        if isinstance(client, str):
            replication = replication_in(client) or replication
            client = client_at(client)
        self.client: Client = client
        self.prefix = checked_prefix(prefix)
        self.ttl = ttl
        self._link = link_to(client, replication)
        self._earlier = EarlierLayout(self._link, prefix)

    def __repr__(self) -> str:
        return f"RedisStore(prefix={self.prefix!r}, ttl={self.ttl})"

    @property
    def ttl(self) -> int | None:
        """How many seconds an unused session is kept; ``None`` for ever. Can be changed anytime."""
        return self._ttl

    @ttl.setter
    def ttl(self, seconds: int | None) -> None:
        if seconds is not None and (type(seconds) is not int or not 0 < seconds <= MAX_TTL):
            raise InvalidInput(
                f"ttl must be a whole number of seconds from 1 to {MAX_TTL}, got {seconds!r}"
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
        marks = {
            "add": sorted(as_marks(frozenset(add))),
            "remove": sorted(as_marks(frozenset(remove))),
        }
        return int(await self._run("mark", scope, where, **marks))

    async def delete(self, scope: Scope, where: Where = EVERYTHING) -> list[str]:
        return _texts(await self._run("delete", scope, where))

    async def count(self, scope: Scope, where: Where = EVERYTHING) -> int:
        return int(await self._run("count", scope, where, only_kind=where.is_only_kind))

    async def sessions(self, user: str) -> list[str]:
        return sorted(map(unescaped, _texts(await self._run("sessions", Scope(user), EVERYTHING))))

    async def users(self, *, cursor: str | None = None, limit: int = USERS_AT_ONCE) -> UserPage:
        after = escaped(user_before(cursor))
        checked_limit(limit)
        await self._earlier.move_all()
        names, last = await page_of_users(self._link, self.prefix, self.clock(), after, limit)
        onward = cursor_after(unescaped(last)) if last else None
        return UserPage(tuple(map(unescaped, names)), onward)

    async def usage(self, user: str) -> Usage:
        """Return how much a user has stored, reading each session in parts."""
        records, size, sessions = 0, 0, await self.sessions(user)
        for session in sessions:
            last = b"-1"
            while last:
                asked = {"after": last.decode()}
                said = await self._run("usage", Scope(user, session), EVERYTHING, **asked)
                records, size, last = records + said[0], size + said[1], said[2]
        return Usage(records, len(sessions), size)

    async def remains(self) -> tuple[Remainder, ...]:
        """Return where the servers may still hold bytes of deleted records."""
        try:
            said = await self._link.persistence()
        except StoreUnavailable:
            raise
        except StoreError:  # the client may not be allowed to ask
            said = [{}]
        return tuple(dict.fromkeys(each for one in said for each in remains_of(one)))

    async def changes(self, user: str, state: Any = None) -> Changes:
        known: dict[str, tuple[str, str]] = {} if state is None else state
        said = await self._run("changes", Scope(user), EVERYTHING, known=known)
        now, records = states_of(said[0]), self._records(user, said[2])
        records.sort(key=lambda record: record.seq)
        gone = frozenset(map(unescaped, known.keys() - now.keys()))
        return Changes(now, records, kept_of(said[1]), gone)

    def dump_state(self, state: Any) -> Any:
        return state

    def load_state(self, kept: Any, listed: Mapping[str, Mapping[str, int]]) -> Any:
        return state_in(kept, dict[str, tuple[str, str]])

    async def vectors(self, user: str, space: str, places: Collection[Place]) -> dict[int, bytes]:
        check_space(user, space)
        found: dict[int, bytes] = {}
        for part in _batches([*places], VECTORS_AT_ONCE):
            named = [each for place in part for each in _named(place)]
            said = await self._run("read_vectors", Scope(user), EVERYTHING, named, space=space)
            found.update((place.seq, sent) for place, sent in zip(part, said, strict=True) if sent)
        return found

    async def put_vectors(self, user: str, space: str, vectors: Mapping[Place, bytes]) -> int:
        check_vectors(user, space, vectors)
        kept = 0
        for part in _batches([*vectors], VECTORS_AT_ONCE):
            given = [each for place in part for each in (*_named(place), vectors[place])]
            kept += int(await self._run("put_vectors", Scope(user), EVERYTHING, given, space=space))
        return kept

    async def vector_spaces(self, user: str) -> dict[str, Kept]:
        sizes: dict[str, dict[tuple[str, bytes], int]] = {}  # a scan may return one twice
        async for session, said in self._walk("list_vectors", user):
            for record_id, space, size in _batches(said, 3):
                sizes.setdefault(space.decode(), {})[session, record_id] = int(size)
        return {space: Kept(len(each), sum(each.values())) for space, each in sizes.items()}

    async def drop_vectors(self, user: str, space: str) -> int:
        check_space(user, space)
        walk = self._walk("drop_vectors", user, space=space)
        return sum([len(dropped) async for _, dropped in walk])

    async def close(self) -> None:
        """Close the client if this store created it. It reconnects when used again."""
        if self._owns_client:
            await self.client.aclose()

    async def _walk(
        self, verb: str, user: str, **more: Any
    ) -> AsyncIterator[tuple[str, list[bytes]]]:
        """Scan the vectors of each of a user's sessions in parts."""
        for session in await self.sessions(user):
            cursor = "0"
            while True:
                step = {"cursor": cursor, "most": VECTORS_AT_ONCE, **more}
                said = await self._run(verb, Scope(user, session), EVERYTHING, **step)
                yield session, said[1]
                cursor = said[0].decode()
                if cursor == "0":
                    break

    def _records(self, user: str, replies: Sequence[bytes]) -> list[Record]:
        found = []
        for piece in pieces_of(replies):
            try:
                found.append(record_of(piece))
            except (CorruptData, ValueError) as error:
                self.report_corrupt(*identity_of(user, piece), error)
        return found

    async def _run(
        self,
        verb: str,
        scope: Scope,
        where: Where,
        arguments: Sequence[str | bytes] = (),
        **more: Any,
    ) -> Any:
        """Run the script of one operation."""
        name = escaped(scope.user)
        await self._earlier.move(scope)
        tag = tag_of(slot_of(name))
        request = {
            "prefix": self.prefix,
            "name": name,
            "tag": tag,
            "now": repr(self.clock()),
            "where": request_for(where),
            **more,
        }
        if scope.session is not None:
            request["session"] = escaped(scope.session)
        if self.ttl is not None:
            request["ttl"] = self.ttl
        if verb not in CHANGING:
            keys = keys_to_read(self.prefix, tag)
            return await self._link.read(verb, keys, [dump(request), *arguments])
        request["remembered"] = REMEMBERED
        keys = keys_to_change(self.prefix, tag)
        return await self._link.change(verb, keys, [dump(request), *arguments])


def _arguments(records: Sequence[Record]) -> list[str]:
    if len(records) > MAX_RECORDS:
        raise InvalidInput(f"one call takes at most {MAX_RECORDS} records, got {len(records)}")
    arguments: list[str] = []
    for record in records:
        try:
            arguments.extend(header_and_body(record))
        except NotSerializable as error:
            raise NotSerializable(f"record {record.id!r}: {error}") from error
    return arguments


def _texts(replies: Sequence[bytes]) -> list[str]:
    return [each.decode() for each in replies]


def _named(place: Place) -> tuple[str, str, str]:
    return escaped(place.session), place.id, str(place.seq)


def _batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (items[start : start + size] for start in range(0, len(items), size))
