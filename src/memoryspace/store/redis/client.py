"""Redis clients from the constructor arguments that AgentScope v1's classes take."""

from __future__ import annotations

from typing import Any

from redis.asyncio import ConnectionPool, Redis

from ...errors import InvalidInput


def client_for(
    client: Redis | None,
    connection_pool: ConnectionPool | None,
    address: dict[str, Any],
    options: dict[str, Any],
) -> Redis:
    """Return the given client, or a new one on the given pool or, without a pool, the address."""
    if client is None and connection_pool is not None and options:
        raise InvalidInput(f"a pool has its own options; set {[*options]} on the pool instead")
    if client is None:
        return Redis(
            connection_pool=connection_pool, **{"decode_responses": True, **address, **options}
        )
    if connection_pool is not None or options:
        raise InvalidInput("a client has its own connections: pass it without a pool and options")
    return client
