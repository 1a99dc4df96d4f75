"""``RedisMemory``: working memory in Redis."""

from __future__ import annotations

from typing import Any

from redis.asyncio import ConnectionPool, Redis

from ..record import Scope
from ..store.redis import RedisStore
from ..store.redis.client import client_for
from .in_memory import DEFAULT_SESSION, DEFAULT_USER
from .stored import StoredMemory


class RedisMemory(StoredMemory):
    """Working memory in a Redis server.

    It uses ``client`` if given, else a client of its own on ``connection_pool`` or, without one, on
    ``host``, ``port``, ``db`` and ``password``; further keywords go to that client. With
    ``key_ttl``, a session is gone so many seconds after its last use, all of it at once.
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
        client: Redis | None = None,
        **kwargs: Any,
    ) -> None:
        self._owns_client = client is None
        address = {"host": host, "port": port, "db": db, "password": password}
        used = client_for(client, connection_pool, address, kwargs)
        self._redis_store = RedisStore(used, prefix=key_prefix or "", ttl=key_ttl)
        super().__init__(self._redis_store, Scope(user_id, session_id))

    @property
    def key_prefix(self) -> str:
        """What every key begins with."""
        return self._redis_store.prefix

    @property
    def key_ttl(self) -> int | None:
        """Seconds a session is kept after its last use; may be changed at any time."""
        return self._redis_store.ttl

    @key_ttl.setter
    def key_ttl(self, seconds: int | None) -> None:
        self._redis_store.ttl = seconds

    def get_client(self) -> Redis:
        """Return the client."""
        return self._redis_store.client

    async def close(self, close_connection_pool: bool | None = None) -> None:
        """Close the client if it was made here; a pool or client that was passed in stays open.

        ``close_connection_pool=True`` closes the pool of a client made here as well. The memory
        connects anew when used.
        """
        if self._owns_client:
            await self._redis_store.client.aclose(close_connection_pool)
