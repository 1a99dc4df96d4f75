"""Clients of Redis servers and clusters: given, from an address, or from AgentScope's arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit, urlunsplit

from redis.asyncio import ConnectionPool, Redis
from redis.asyncio.cluster import ClusterNode, RedisCluster
from redis.asyncio.connection import SSLConnection, parse_url
from redis.exceptions import RedisClusterException, RedisError

from ...errors import InvalidInput
from .cluster import ClusterLink
from .link import Link, Replication
from .server import ServerLink

Client = Redis | RedisCluster

_CLUSTER = "+cluster"
_WAITS = {"wait_replicas": int, "wait_timeout": float}


def client_for(
    client: Client | None,
    connection_pool: ConnectionPool | None,
    address: dict[str, Any],
    options: dict[str, Any],
) -> Client:
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


def link_to(client: Client, replication: Replication) -> Link:
    """Return the link that a client needs."""
    if isinstance(client, RedisCluster):
        return ClusterLink(client, replication)
    return ServerLink(client, replication)


def client_at(address: str, **options: Any) -> Client:
    """Return a new client for the address of a server or a cluster; the caller closes it.

    Raises:
        InvalidInput: The address is not one of a cluster.
    """
    parts, _ = _without_waits(address)
    if not parts.scheme.lower().endswith(_CLUSTER):
        return Redis.from_url(urlunsplit(parts), **options)
    try:
        return _cluster(parts, options)
    except (RedisClusterException, RedisError, TypeError, ValueError) as error:
        raise InvalidInput(f"unusable address of a Redis cluster: {error}") from error


def replication_in(address: str) -> Replication | None:
    """Return what the options ``wait_replicas`` and ``wait_timeout`` of an address ask for.

    Raises:
        InvalidInput: An option is not a number in its range.
    """
    _, waits = _without_waits(address)
    if not waits:
        return None
    try:
        given = {name: _WAITS[name](value) for name, value in waits.items()}
    except ValueError as error:
        raise InvalidInput(f"unusable option in a Redis address: {error}") from error
    return Replication(int(given.get("wait_replicas", 0)), given.get("wait_timeout", 1.0))


def _without_waits(address: str) -> tuple[SplitResult, dict[str, str]]:
    parts = urlsplit(address)
    options = parse_qsl(parts.query, keep_blank_values=True)
    waits = {name: value for name, value in options if name in _WAITS}
    if not waits:
        return parts, waits
    rest = urlencode([each for each in options if each[0] not in _WAITS])
    return parts._replace(query=rest), waits


def _cluster(parts: SplitResult, options: dict[str, Any]) -> RedisCluster:
    scheme = parts.scheme.lower().removesuffix(_CLUSTER)
    login, at, hosts = parts.netloc.rpartition("@")
    every = [
        parse_url(urlunsplit(parts._replace(scheme=scheme, netloc=f"{login}{at}{host}")))
        for host in hosts.split(",")
    ]
    nodes = [ClusterNode(each.get("host", "localhost"), each.get("port", 6379)) for each in every]
    given: dict[str, Any] = {**_for_cluster(options), **_for_cluster(every[0])}
    if given.pop("connection_class", None) is SSLConnection:
        given["ssl"] = True
    return RedisCluster(startup_nodes=nodes, **given)


def _for_cluster(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a server's client that a cluster's has too; it never repeats a call."""
    without = ("host", "port", "retry_on_timeout")
    return {
        name: value
        for name, value in options.items()
        if name not in without and (name, value) != ("max_connections", None)
    }
