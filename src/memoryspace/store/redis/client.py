"""Opening a Redis client the way AgentScope v1's classes take their addresses."""

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
    """Return the given client, or a new one on the given pool or, without one, on the address."""
    if client is None and connection_pool is not None and options:
        raise InvalidInput(f"a pool brings its own options; give it {[*options]} instead")
    if client is None:
        return Redis(
            connection_pool=connection_pool, **{"decode_responses": True, **address, **options}
        )
    if connection_pool is not None or options:
        raise InvalidInput("a client brings its own connections: give it alone, without options")
    return client
