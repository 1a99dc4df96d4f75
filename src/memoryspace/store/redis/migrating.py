"""Moving keys from the layout of earlier versions, which had no hash tags, while the store is used.

Earlier versions wrote ``user_id:<user>:…`` and one counter, ``memoryspace:seq``, for a whole
prefix. While that counter exists, a store moves the keys of a user, in one atomic step, before each
call about that user. So nobody ever sees an empty or a half-moved memory. ``migrate`` moves all
users and then deletes the counter, which ends the extra step.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from redis.asyncio import Redis

from ...errors import InvalidInput, StoreError
from ...portable import Portable
from ...record import Scope
from ..codec import dump
from .layout import PARTS, base_of, checked_prefix, escaped, keys_to_read, slot_of, tag_of
from .link import Link
from .server import ServerLink

SCANNED = 1000  # keys visited per call
MARKERS = ("memoryspace:seq", "memoryspace:users")  # one of them exists while there is earlier data
MOST_PREFIXES = 10_000  # remembered per client

_SPECIAL = re.compile(r"[*?\[\]^\\-]")  # in key patterns


class Migration(Portable, frozen=True):
    """What ``migrate`` has moved so far.

    Attributes:
        users: The number of users. One that an earlier version wrote to meanwhile counts again.
        sessions: The number of sessions.
        records: The number of records.
        states: The number of states that a ``RedisSession`` saved.
    """

    users: int = 0
    sessions: int = 0
    records: int = 0
    states: int = 0


async def migrate(
    client: Redis,
    *,
    prefix: str = "",
    on_progress: Callable[[Migration], None] | None = None,
) -> Migration:
    """Move everything under a prefix from the key layout of earlier versions to the present one.

    The keys are renamed, user by user; each user is moved in one atomic step. It can be stopped and
    run again at any time, and repeated without harm. Stores of this version can read and write
    meanwhile. Processes of earlier versions must be stopped before: they do not find what has been
    moved. It ends when a whole scan has found nothing left to move.

    A server is migrated before it becomes part of a cluster: afterwards the old keys are in
    different slots.

    Args:
        client: The client of a Redis server; it stays open.
        prefix: The prefix of the store: ``"memoryspace:service:"`` for long-term memory that was
            opened by address, the ``key_prefix`` of a ``RedisMemory`` or ``RedisSession``.
        on_progress: Called with the numbers so far, after every step that moved something.

    Returns:
        What was moved.

    Raises:
        InvalidInput: The client is one of a cluster.
        StoreUnavailable: The server cannot be reached. Run it again.

    Example::

        async with Redis.from_url("redis://localhost:6379/0") as client:
            print(await migrate(client, prefix="memoryspace:service:"))
    """
    if not isinstance(client, Redis):
        raise InvalidInput("a cluster cannot be migrated: migrate the server before it joins one")
    link = ServerLink(client)
    return await _Move(link, checked_prefix(prefix), on_progress).run()


class EarlierLayout:
    """Sees to it that data in the earlier layout is moved before it is needed.

    Args:
        link: To the server or cluster.
        prefix: The prefix of the store.
    """

    def __init__(self, link: Link, prefix: str) -> None:
        self._link, self._prefix = link, prefix

    async def move(self, scope: Scope) -> None:
        """Move the keys of a user if there may be some.

        Raises:
            StoreError: There are some in a cluster, where they cannot be moved in one step.
        """
        if await self._may_exist():
            sessions = [] if scope.session is None else [_old_escaped(scope.session)]
            await adopt(self._link, self._prefix, _old_escaped(scope.user), sessions)

    async def move_all(self) -> None:
        """Move the keys of all users if there may be some.

        Raises:
            StoreError: There are some in a cluster.
        """
        if await self._may_exist():
            await _Move(self._link, self._prefix, None).run()

    async def _may_exist(self) -> bool:
        known = self._link.earlier
        if known.get(self._prefix, True):
            if len(known) > MOST_PREFIXES:
                known.clear()
            markers = [self._prefix + marker for marker in MARKERS]
            known[self._prefix] = any([await self._link.ask(key, "EXISTS", key) for key in markers])
            if known[self._prefix] and self._link.is_cluster:
                raise StoreError(
                    f"the cluster has data of an earlier version under the prefix "
                    f"{self._prefix!r}, scattered over slots; move it with "
                    "memoryspace.store.redis.migrate on a single server, then import that"
                )
        return known[self._prefix]


async def adopt(link: Link, prefix: str, old: str, sessions: Iterable[str]) -> tuple[int, int]:
    """Move the keys of one user; return how many sessions and records were moved.

    Args:
        link: To the server.
        prefix: The prefix of the store.
        old: The user as the earlier layout wrote it.
        sessions: Sessions as written there that its list may lack.
    """
    name = escaped(_old_unescaped(old))
    tag = tag_of(slot_of(name))
    request = {
        "prefix": prefix,
        "name": name,
        "tag": tag,
        "old": old,
        "sessions": sorted(sessions),
        "now": "0",
    }
    moved = await link.read("adopt", keys_to_read(prefix, tag), [dump(request)])
    return moved[0], moved[1]


@dataclass
class _Found:
    """What one step of a scan found: sessions by user, and the user and session of states."""

    sessions: dict[str, set[str]]
    states: list[tuple[str, str]]


class _Move:
    def __init__(
        self, link: Link, prefix: str, on_progress: Callable[[Migration], None] | None
    ) -> None:
        self._link, self._prefix = link, prefix
        self._head = f"{prefix}user_id:"
        self._on_progress = on_progress
        self._users = self._sessions = self._records = self._states = 0

    @property
    def _done(self) -> Migration:
        return Migration(self._users, self._sessions, self._records, self._states)

    async def run(self) -> Migration:
        while await self._scan():  # a scan misses what is renamed while it runs, and newer keys
            pass
        await self._link.ask("", "DEL", *(self._prefix + each for each in self._markers()))
        return self._done

    def _markers(self) -> tuple[str, ...]:
        return (*MARKERS, "memoryspace:users:whole")

    async def _scan(self) -> bool:
        """Move what one scan of the keys finds; return whether there was anything."""
        cursor, has_found = 0, False
        pattern = _SPECIAL.sub(r"\\\g<0>", self._head) + "*"
        while True:
            command = ("SCAN", cursor, "MATCH", pattern, "COUNT", SCANNED)
            said, keys = await self._link.ask("", *command)
            cursor = int(said)
            found = self._read(keys)
            if found.sessions or found.states:
                has_found = True
                await self._move(found)
            if cursor == 0:
                return has_found

    def _read(self, keys: list[bytes]) -> _Found:
        found = _Found({}, [])
        for key in keys:
            match key.decode("utf-8", "replace")[len(self._head) :].split(":"):
                case [user, "sessions"]:
                    found.sessions.setdefault(user, set())
                case [user, "session", session, "state"]:
                    found.states.append((user, session))
                case [user, "session", session, part] if part in PARTS:
                    found.sessions.setdefault(user, set()).add(session)
        return found

    async def _move(self, found: _Found) -> None:
        for user, names in found.sessions.items():
            sessions, records = await adopt(self._link, self._prefix, user, names)
            self._users += 1
            self._sessions += sessions
            self._records += records
        for user, session in found.states:
            self._states += await self._rename_state(user, session)
        if self._on_progress is not None:
            self._on_progress(self._done)

    async def _rename_state(self, user: str, session: str) -> int:
        """Rename a saved state, unless a newer one was saved under the new name."""
        old = earlier_state_key(self._prefix, _old_unescaped(user), _old_unescaped(session))
        new = state_key(self._prefix, _old_unescaped(user), _old_unescaped(session))
        try:
            return int(await self._link.ask(old, "RENAMENX", old, new)) or int(
                await self._link.ask(old, "DEL", old)
            )
        except StoreError as error:
            if "no such key" in str(error):  # another process has moved it, or it has expired
                return 0
            raise


def state_key(prefix: str, user: str, session: str) -> str:
    """Return the key of the state that a ``RedisSession`` saves."""
    return f"{base_of(prefix, escaped(user))}session:{escaped(session)}:state"


def earlier_state_key(prefix: str, user: str, session: str) -> str:
    """Return the key that earlier versions gave it."""
    return f"{prefix}user_id:{_old_escaped(user)}:session:{_old_escaped(session)}:state"


def _old_escaped(id_: str) -> str:
    return id_.replace("%", "%25").replace(":", "%3A")


def _old_unescaped(part: str) -> str:
    return part.replace("%3A", ":").replace("%25", "%")
