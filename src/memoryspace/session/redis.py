"""``RedisSession``: session states in Redis."""

from __future__ import annotations

from typing import Any

from redis.asyncio import ConnectionPool, Redis

from ..lifecycle import Closing
from ..store.redis.calls import call, send_once, send_raw
from ..store.redis.client import client_for
from ..store.redis.wire import escaped
from .base import SessionBase

DEFAULT_USER = "default_user"


class RedisSession(SessionBase, Closing):
    """Stores states in a Redis server, one key per session.

    Without a user id, the user is ``default_user``.

    Args:
        host: Host of the server; ``port``, ``db``, ``password`` and further options of the client
            as for ``RedisMemory``.
        connection_pool: A pool to use instead of an address.
        key_ttl: Seconds after the last save or load until a state expires; None for never.
        key_prefix: Put before every key.
        client: A client to use instead; it stays open on ``close``.
    """

    def __init__(
        self,
        host: str = "localhost",
        port: int = 6379,
        db: int = 0,
        password: str | None = None,
        connection_pool: ConnectionPool | None = None,
        key_ttl: int | None = None,
        key_prefix: str = "",
        *,
        client: Redis | None = None,
        **kwargs: Any,
    ) -> None:
        self._owns_client = client is None
        address = {"host": host, "port": port, "db": db, "password": password}
        self._client = client_for(client, connection_pool, address, kwargs)
        self.key_ttl = key_ttl
        self.key_prefix = key_prefix or ""

    def get_client(self) -> Redis:
        """Return the client."""
        return self._client

    async def close(self) -> None:
        """Close the client, unless it was passed in."""
        if self._owns_client:
            await self._client.aclose()

    async def _write(self, session_id: str, user_id: str, text: str) -> None:
        life = () if self.key_ttl is None else ("EX", self.key_ttl)
        command = ("SET", self._key(session_id, user_id), text, *life)
        await call(lambda: send_once(self._client, *command), repeatable=False)

    async def _read(self, session_id: str, user_id: str) -> bytes | None:
        slide = () if self.key_ttl is None else ("EX", self.key_ttl)
        command = ("GETEX", self._key(session_id, user_id), *slide)
        state: bytes | None = await call(lambda: send_raw(self._client, *command), repeatable=True)
        return state

    def _key(self, session_id: str, user_id: str) -> str:
        user = escaped(user_id or DEFAULT_USER)
        return f"{self.key_prefix}user_id:{user}:session:{escaped(session_id)}:state"
