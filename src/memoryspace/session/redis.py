"""``RedisSession``: session states in Redis."""

from __future__ import annotations

from typing import Any

from redis.asyncio import ConnectionPool

from ..lifecycle import Closing
from ..store.redis.client import Client, client_for, link_to
from ..store.redis.layout import checked_prefix
from ..store.redis.link import Replication
from ..store.redis.migrating import earlier_state_key, state_key
from .base import SessionBase

DEFAULT_USER = "default_user"


class RedisSession(SessionBase, Closing):
    """Stores states in a Redis or Valkey server or cluster, one key per session.

    Without a user id, the user is ``default_user``.

    Args:
        host: Host of the server; ``port``, ``db``, ``password`` and further options of the client
            as for ``RedisMemory``.
        connection_pool: A pool to use instead of an address.
        key_ttl: Seconds after the last save or load until a state expires; None for never.
        key_prefix: Put before every key.
        client: A ``Redis`` or ``RedisCluster`` client to use instead; it stays open on ``close``.
        wait_replicas: How many replicas must have a state before it counts as saved.
        wait_timeout: How many seconds to wait for them.
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
        client: Client | None = None,
        wait_replicas: int = 0,
        wait_timeout: float = 1.0,
        **kwargs: Any,
    ) -> None:
        self._owns_client = client is None
        address = {"host": host, "port": port, "db": db, "password": password}
        self._client = client_for(client, connection_pool, address, kwargs)
        self.key_ttl = key_ttl
        self.key_prefix = checked_prefix(key_prefix or "")
        self._link = link_to(self._client, Replication(wait_replicas, wait_timeout))

    def get_client(self) -> Client:
        """Return the client."""
        return self._client

    async def close(self) -> None:
        """Close the client, unless it was passed in."""
        if self._owns_client:
            await self._client.aclose()

    async def _write(self, session_id: str, user_id: str, text: str) -> None:
        key = state_key(self.key_prefix, user_id or DEFAULT_USER, session_id)
        life = () if self.key_ttl is None else ("EX", self.key_ttl)
        await self._link.tell(key, "SET", key, text, *life)

    async def _read(self, session_id: str, user_id: str) -> bytes | None:
        """Return the state, also one that an earlier version saved and nobody has moved yet."""
        slide = () if self.key_ttl is None else ("EX", self.key_ttl)
        names = (self.key_prefix, user_id or DEFAULT_USER, session_id)
        state: bytes | None = None
        for key in (state_key(*names), earlier_state_key(*names)):
            state = await self._link.ask(key, "GETEX", key, *slide)
            if state is not None:
                break
        return state
