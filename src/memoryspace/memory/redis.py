"""``RedisMemory``: working memory in Redis."""

from __future__ import annotations

from typing import Any

from redis.asyncio import ConnectionPool, Redis

from ..record import Scope
from ..store.redis import RedisStore
from ..store.redis.client import Client, client_for
from .in_memory import DEFAULT_SESSION, DEFAULT_USER
from .stored import StoredMemory


class RedisMemory(StoredMemory):
    """Working memory in a Redis or Valkey server, or in a cluster of them.

    Args:
        session_id: The session of the user.
        user_id: The user the messages belong to.
        host: The server's host. Used without ``client`` and ``connection_pool``.
        port: The server's port.
        db: The database number.
        password: The server's password.
        connection_pool: A pool to share; it is never closed unless asked for.
        key_prefix: What every key begins with.
        key_ttl: Seconds after its last use when the whole session expires; ``None`` keeps it.
        client: A ``Redis`` or ``RedisCluster`` client to use instead; it is never closed.
        wait_replicas: How many replicas must have a change before it is acknowledged.
        wait_timeout: How many seconds to wait for them.
        **kwargs: Further options of the client that is created.

    Example::

        memory = RedisMemory("garden", "alice", connection_pool=pool, key_ttl=3600)
        await memory.add(Msg("Alice", "Plan a garden.", "user"))
    """

    def __init__(
        self,
        session_id: str = DEFAULT_SESSION,
        user_id: str = DEFAULT_USER,
        host: str = "localhost",
        port: int = 6379,
        db: int = 0,
        password: str | None = None,
        connection_pool: ConnectionPool | None = None,
        key_prefix: str = "",
        key_ttl: int | None = None,
        *,
        client: Client | None = None,
        wait_replicas: int = 0,
        wait_timeout: float = 1.0,
        **kwargs: Any,
    ) -> None:
        self._owns_client = client is None
        address = {"host": host, "port": port, "db": db, "password": password}
        used = client_for(client, connection_pool, address, kwargs)
        self._redis_store = RedisStore(
            used,
            prefix=key_prefix or "",
            ttl=key_ttl,
            wait_replicas=wait_replicas,
            wait_timeout=wait_timeout,
        )
        super().__init__(self._redis_store, Scope(user_id, session_id))

    @property
    def key_prefix(self) -> str:
        """The prefix of every key."""
        return self._redis_store.prefix

    @property
    def key_ttl(self) -> int | None:
        """Seconds a session is kept after its last use. It may be changed at any time."""
        return self._redis_store.ttl

    @key_ttl.setter
    def key_ttl(self, seconds: int | None) -> None:
        self._redis_store.ttl = seconds

    def get_client(self) -> Client:
        """Return the client."""
        return self._redis_store.client

    async def close(self, close_connection_pool: bool | None = None) -> None:
        """Close the client if this memory created it. A client or pool passed in stays open.

        The memory reconnects when it is used again.

        Args:
            close_connection_pool: Also close the pool of the client created here.
        """
        client = self._redis_store.client
        if self._owns_client and isinstance(client, Redis):
            await client.aclose(close_connection_pool)
