"""``ClusterLink``: Redis Cluster or Valkey Cluster, through a failover and while slots move.

The client knows the servers and which has what slot. Which server to ask, how often, and what a
lost reply means are decided here: the client repeats commands that may have run, and sends
``ASKING`` and the command it is for on two connections.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from itertools import chain
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from redis.asyncio.cluster import ClusterNode, RedisCluster
from redis.client import NEVER_DECODE
from redis.exceptions import AskError, MovedError, RedisError
from redis.exceptions import ConnectionError as RedisConnectionError

from ...errors import StoreUnavailable
from ...loops import PerLoop, heeding_cancellation
from ...retrying import Attempts, Backoff
from .faults import TROUBLE, UNKNOWN, is_between_servers, is_busy, is_lost, translated
from .link import REPEATED_WITHIN, Link, Replication
from .scripts import Post, run_script

T = TypeVar("T")
_BACKOFF = Backoff(first=0.02, longest=0.5)
_ALONE = Replication()
_ONWARD = 4  # redirections followed at once; whoever is redirected more often pauses first


class _Target(NamedTuple):
    """A server to send to; ``asking`` if it is only just receiving the slot."""

    node: ClusterNode
    asking: bool = False


class _NotSent(Exception):
    """No connection, so the command has not run."""


class _Shared:
    """What all links on one client share."""

    def __init__(self) -> None:
        self.slots: dict[str, PerLoop[asyncio.Semaphore]] = {}  # by the name of the node
        self.moved: dict[int, ClusterNode] = {}  # slots that moved since the table was read
        self.reading = PerLoop(asyncio.Lock)
        self.readings = 0
        self.earlier: dict[str, bool] = {}


_shared: WeakKeyDictionary[RedisCluster, _Shared] = WeakKeyDictionary()


class ClusterLink(Link):
    """Sends each script and command to the primary that has its slot.

    Reads are repeated for ``REPEATED_WITHIN`` seconds, which is longer than a failover takes.
    So are changes, because the script stores its answer in the slot it changes: a promoted
    replica has both or neither.

    Args:
        client: The client; it stays the caller's. It must not be used by two event loops at once.
        replication: How many replicas must confirm a change.
        clock: Returns seconds, to know how long a command may be sent again.
    """

    is_cluster = True

    def __init__(
        self,
        client: RedisCluster,
        replication: Replication = _ALONE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        replication.fits(client.connection_kwargs.get("socket_timeout"))
        state = _shared.setdefault(client, _Shared())
        self._client = client
        self._replication = replication
        self._clock = clock
        self._state = state
        self.earlier = state.earlier

    async def read(
        self, verb: str, keys: Sequence[str], arguments: Sequence[str | bytes] = ()
    ) -> Any:
        return await self._deliver(keys[0], lambda post: run_script(post, verb, keys, arguments))

    async def change(
        self, verb: str, keys: Sequence[str], arguments: Sequence[str | bytes] = ()
    ) -> Any:
        return await self._deliver(
            keys[0],
            lambda post: run_script(post, verb, keys, arguments),
            replication=self._replication,
        )

    async def ask(self, key: str, *command: Any) -> Any:
        return await self._deliver(key, lambda post: post(*command))

    async def tell(self, key: str, *command: Any) -> Any:
        return await self._deliver(
            key, lambda post: post(*command), repeatable=False, replication=self._replication
        )

    async def groups(self, keys: Sequence[str]) -> list[list[int]]:
        """Return each key that exists as a group of its own, for each has a slot of its own."""
        await self._target(keys[0])  # connects
        by_owner: dict[ClusterNode, list[int]] = {}
        for place, key in enumerate(keys):
            by_owner.setdefault(self._owner(key), []).append(place)
        every = [await self._existing(node, same, keys) for node, same in by_owner.items()]
        return [[place] for place in sorted(chain.from_iterable(every))]

    async def persistence(self) -> list[Mapping[str, Any]]:
        await self._client.initialize()
        nodes = self._client.get_nodes()
        try:
            return [await node.execute_command("INFO", "persistence") for node in nodes]
        except Exception as error:
            raise translated(error) or error from error

    async def _existing(
        self, node: ClusterNode, places: list[int], keys: Sequence[str]
    ) -> list[int]:
        """Return which of these keys, probably all on one server, exist."""
        post = partial(self._post, _ALONE, math.inf, _Target(node))
        try:
            said = await run_script(post, "probe", (), [keys[place] for place in places])
            known = {places[at]: found for at, found in zip(said[::2], said[1::2], strict=True)}
        except (_NotSent, *TROUBLE):
            known = dict.fromkeys(places, -1)
        for place, found in known.items():
            if found < 0:  # its slot has moved, or the server is gone or refuses such scripts
                known[place] = await self.ask(keys[place], "EXISTS", keys[place])
        return [place for place, found in known.items() if found]

    async def _deliver(
        self,
        key: str,
        send: Callable[[Post], Awaitable[T]],
        *,
        repeatable: bool = True,
        replication: Replication = _ALONE,
    ) -> T:
        """Send to the server that has the key's slot, whichever that becomes meanwhile."""
        until, may_have_run = self._clock() + REPEATED_WITHIN, False
        async for _ in Attempts(_BACKOFF):
            latest = until if may_have_run else math.inf
            try:
                return await self._follow(key, send, partial(self._post, replication, latest))
            except Exception as error:
                may_have_run = may_have_run or is_lost(error)
                again = repeatable or not is_lost(error)
                if not again or not _passes(error) or self._clock() > until:
                    raise _final(error, may_have_run) from error
            await self._read_slots()
        raise AssertionError("the loop above returns or raises")

    async def _follow(self, key: str, send: Callable[[Post], Awaitable[T]], post: Post) -> T:
        """Send to the server that should have the key, and then to where that one points."""
        target = await self._target(key)
        for _ in range(_ONWARD):
            try:
                return await send(partial(post, target))
            except AskError as error:  # MovedError is one
                target = self._redirected(error)
        return await send(partial(post, target))

    async def _target(self, key: str) -> _Target:
        await self._client.initialize()
        return _Target(self._owner(key))

    def _owner(self, key: str) -> ClusterNode:
        slot = self._client.keyslot(key)
        moved = self._state.moved.get(slot)
        return self._client.nodes_manager.get_node_from_slot(slot) if moved is None else moved

    def _redirected(self, error: AskError) -> _Target:
        """Return where a server redirects to; raise the error if that server is not known."""
        host, port = self._client.nodes_manager.remap_host_port(error.host, error.port)
        node = self._client.get_node(host=host, port=port) if host else None
        if node is None:
            raise error
        if isinstance(error, MovedError):
            self._state.moved[error.slot_id] = node
        return _Target(node, asking=not isinstance(error, MovedError))

    async def _read_slots(self) -> None:
        """Ask the cluster which server has which slot; once for all callers that wait for it."""
        seen = self._state.readings
        async with self._state.reading.get():
            if self._state.readings != seen:
                return
            with suppress(*TROUBLE):  # nobody answers: the old table is the best one
                await self._client.nodes_manager.initialize()
                self._state.moved.clear()
            self._state.readings += 1

    async def _post(
        self, replication: Replication, latest: float, target: _Target, *command: Any
    ) -> Any:
        """Send one command, with what belongs before and after it, on one connection."""
        commands = [("ASKING",)] if target.asking else []
        commands.append(command)
        if replication.replicas:
            commands.append(replication.command)
        async with self._connection(target.node) as (node, connection):
            if self._clock() > latest:  # a connection may have been slow to get
                raise RedisConnectionError("connected too late to send the command again")
            replies = await _exchange(node, connection, commands)
        at = int(target.asking)
        for reply in replies[at:]:
            if isinstance(reply, Exception):
                raise reply
        if replication.replicas:
            replication.check(replies[-1])
        return replies[at]

    @asynccontextmanager
    async def _connection(self, node: ClusterNode) -> AsyncIterator[tuple[ClusterNode, Any]]:
        """Lend a connection to a node, within the client's limit for each node."""
        limit = partial(asyncio.Semaphore, node.max_connections)
        async with self._state.slots.setdefault(node.name, PerLoop(limit)).get():
            connection = node.acquire_connection()
            try:
                await _connect(node, connection)
                yield node, connection
            except BaseException:
                await _drop(connection)
                raise
            finally:
                _release(node, connection)


async def _exchange(
    node: ClusterNode, connection: Any, commands: Sequence[tuple[Any, ...]]
) -> list[Any]:
    """Send commands in one go; return their replies, as bytes, and errors."""
    with heeding_cancellation():
        await connection.send_packed_command(connection.pack_commands(commands))
    replies: list[Any] = []
    for command in commands:
        try:
            reply = await node.parse_response(connection, command[0], **{NEVER_DECODE: True})
        except RedisError as error:
            if is_lost(error):
                raise
            reply = error
        replies.append(reply)
    return replies


async def _connect(node: ClusterNode, connection: Any) -> None:
    try:
        if hasattr(node, "disconnect_if_needed"):
            await node.disconnect_if_needed(connection)
        await connection.connect()
    except TROUBLE as error:
        raise _NotSent(f"{node.name} cannot be reached: {error}") from error


async def _drop(connection: Any) -> None:
    with suppress(*TROUBLE, RuntimeError):  # RuntimeError: its loop is closed
        await connection.disconnect(nowait=True)


def _release(node: ClusterNode, connection: Any) -> None:
    if hasattr(node, "release"):
        node.release(connection)
    else:  # before redis 7
        node._free.append(connection)


def _passes(error: Exception) -> bool:
    """Return whether the trouble may be over in a moment."""
    passing = is_lost(error) or is_busy(error) or is_between_servers(error)
    return passing or isinstance(error, _NotSent | AskError)


def _final(error: Exception, may_have_run: bool) -> Exception:
    if may_have_run and not is_lost(error) and _passes(error):
        return StoreUnavailable(
            f"the cluster stopped answering: {error}; {UNKNOWN}, try again when it is whole"
        )
    if isinstance(error, _NotSent):
        return StoreUnavailable(
            f"the cluster cannot be reached: {error}; nothing has happened, "
            "try again when the cluster is whole"
        )
    return translated(error) or error
