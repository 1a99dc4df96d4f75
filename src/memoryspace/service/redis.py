"""``RedisMemoryService``: a memory service in Redis, for any number of processes."""

from __future__ import annotations

from collections.abc import Sequence

from ..store.opening import REDIS_PREFIX
from ..store.redis import RedisStore
from ..store.redis.client import Client, client_at, replication_in
from ..store.redis.link import Replication
from .deriving.contract import Deriver
from .settings import ServiceSettings, limited
from .stored import StoredMemoryService

PREFIX = REDIS_PREFIX


class RedisMemoryService(StoredMemoryService):
    """A memory service in a Redis or Valkey server, or in a cluster of them.

    Args:
        redis_url: The server, or a cluster: ``redis+cluster://host:port,host:port``. ``stop``
            closes the client made for it.
        redis_client: A ``Redis`` or ``RedisCluster`` client to use instead, which the caller
            closes. The connection options below then have no effect.
        socket_timeout: Seconds to wait for an answer.
        socket_connect_timeout: Seconds to wait for a connection.
        max_connections: The most connections of the pool; of a cluster, to each server.
        retry_on_timeout: Whether to repeat a command that timed out.
        ttl_seconds: How long each memory lives; ``None`` means that nothing expires.
        max_messages_per_session: How many of the newest messages of a session to keep.
        health_check_interval: Seconds between checks of an idle connection.
        socket_keepalive: Whether to keep idle connections alive.
        prefix: The prefix of all keys.
        wait_replicas: How many replicas must have a change before it is acknowledged.
        wait_timeout: How many seconds to wait for them.
        settings: How to search, what to accept and how long to keep it.
        deriver: A single deriver, short for ``derivers=[deriver]``.
        derivers: What makes memories from messages, such as ``PersonalDeriver()``.

    Example::

        async with RedisMemoryService("redis://localhost:6379/0") as service:
            await service.add_memory("ann", ["I live in Oslo"])
    """

    def __init__(
        self,
        redis_url: str = "redis://localhost:6379/0",
        redis_client: Client | None = None,
        *,
        socket_timeout: float | None = 5.0,
        socket_connect_timeout: float | None = 5.0,
        max_connections: int | None = None,
        retry_on_timeout: bool = True,
        ttl_seconds: float | None = None,
        max_messages_per_session: int | None = None,
        health_check_interval: float = 30.0,
        socket_keepalive: bool = True,
        prefix: str = PREFIX,
        wait_replicas: int = 0,
        wait_timeout: float = 1.0,
        settings: ServiceSettings | None = None,
        deriver: Deriver | None = None,
        derivers: Sequence[Deriver] = (),
    ) -> None:
        self._owns_client = redis_client is None
        replication = Replication(wait_replicas, wait_timeout)
        if redis_client is None:
            replication = replication_in(redis_url) or replication
            redis_client = client_at(
                redis_url,
                socket_timeout=socket_timeout,
                socket_connect_timeout=socket_connect_timeout,
                max_connections=max_connections,
                retry_on_timeout=retry_on_timeout,
                health_check_interval=health_check_interval,
                socket_keepalive=socket_keepalive,
            )
        settings = limited(settings, ttl_seconds, max_messages_per_session)
        self._redis_store = RedisStore(
            redis_client,
            prefix=prefix,
            wait_replicas=replication.replicas,
            wait_timeout=replication.timeout,
        )
        super().__init__(self._redis_store, settings=settings, deriver=deriver, derivers=derivers)
        self._client = redis_client

    async def delete_user_memory(self, user_id: str) -> None:
        """Delete all memories of a user; use ``delete_memory`` to learn what was deleted."""
        await self.delete_memory(user_id)

    async def clear_all_memory(self) -> int:
        """Delete all memories of all users under this prefix; return how many there were.

        Users are deleted one by one; a user added meanwhile may remain.
        """
        cursor, gone = None, 0
        while True:
            page = await self.users(cursor=cursor)
            gone += sum([len(await self.delete_memory(user)) for user in page.users])
            cursor = page.cursor
            if cursor is None:
                return gone

    async def _let_go(self) -> None:
        if self._owns_client:
            await self._client.aclose()
