"""``RedisMemoryService``: long-term memory in Redis, for any number of processes."""

from __future__ import annotations

from collections.abc import Sequence

from redis.asyncio import Redis

from ..store.opening import REDIS_PREFIX
from ..store.redis import RedisStore
from .deriving.contract import Deriver
from .settings import ServiceSettings, limited
from .stored import StoredMemoryService

PREFIX = REDIS_PREFIX


class RedisMemoryService(StoredMemoryService):
    """Memories in a Redis server.

    ``redis_client`` stays the caller's; otherwise a client is made for ``redis_url`` and closed by
    ``stop``. Nothing expires unless ``ttl_seconds`` is given: then each memory does, by itself,
    so long after it was said.
    """

    def __init__(
        self,
        redis_url: str = "redis://localhost:6379/0",
        redis_client: Redis | None = None,
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
        settings: ServiceSettings | None = None,
        deriver: Deriver | None = None,
        derivers: Sequence[Deriver] = (),
    ) -> None:
        self._owns_client = redis_client is None
        if redis_client is None:
            redis_client = Redis.from_url(
                redis_url,
                socket_timeout=socket_timeout,
                socket_connect_timeout=socket_connect_timeout,
                max_connections=max_connections,
                retry_on_timeout=retry_on_timeout,
                health_check_interval=health_check_interval,
                socket_keepalive=socket_keepalive,
            )
        settings = limited(settings, ttl_seconds, max_messages_per_session)
        self._redis_store = RedisStore(redis_client, prefix=prefix)
        super().__init__(self._redis_store, settings=settings, deriver=deriver, derivers=derivers)
        self._client = redis_client

    async def delete_user_memory(self, user_id: str) -> None:
        """Forget everything of a user; ``delete_memory`` says what that was."""
        await self.delete_memory(user_id)

    async def clear_all_memory(self) -> int:
        """Forget everything of every user under this prefix; return how many memories that were.

        One user after the other: who is added meanwhile may stay.
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
