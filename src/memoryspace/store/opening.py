"""``open_store``: create the store backend that an address names."""

from __future__ import annotations

import re
import time
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InvalidInput, MissingExtra
from ..events import EventStream
from .contract import Clock, Store
from .memory import MemoryStore

if TYPE_CHECKING:
    from ..kernel import Durability

REDIS_PREFIX = "memoryspace:service:"  # of every key of long-term memory in Redis

_MEMORY = "memory:"
_REDIS = ("redis", "rediss", "unix", "redis+cluster", "rediss+cluster")
# Kinds of databases, each with the extra that installs its driver.
_DATABASES = {
    "sqlite": "sql",
    "postgresql": "postgres",
    "postgres": "postgres",
    "mysql": "mysql",
    "mariadb": "mysql",
}
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")  # at least two letters: C:\ is a folder

Address = str | PathLike[str]


def open_store(
    address: Address,
    *,
    clock: Clock = time.time,
    events: EventStream | None = None,
    durability: Durability | None = None,
) -> Store:
    """Return the store at an address. The caller closes it.

    Nothing is connected or created before the first use.

    Args:
        address: ``memory:`` for this process's memory; ``sqlite:///…``, ``postgresql://…`` (or
            ``postgres://…``), ``mysql://…`` or ``mariadb://…`` for a database; ``redis://…``,
            ``rediss://…`` or ``unix://…`` for a Redis or Valkey server;
            ``redis+cluster://host:port,host:port`` or ``rediss+cluster://…`` for a cluster.
            Anything else is a folder, which one process at a time can open.
        clock: Returns the current time in seconds since the epoch.
        events: The stream to emit events on; a new one by default.
        durability: How a folder is kept on disk; databases and servers have settings of their own.

    Returns:
        The store: an async context manager that closes itself.

    Raises:
        InvalidInput: The address is empty, a file, or has an unknown scheme.
        MissingExtra: The package that the backend needs is not installed.
        TypeError: The address is neither a string nor a path.

    Example::

        async with open_store("sqlite:///memory.db") as store:
            print(await store.count(Scope("alice")))
    """
    if not isinstance(address, str):
        return _folder(address, clock, events, durability)
    scheme = _scheme(address)
    if scheme is None:
        return _folder(address, clock, events, durability)
    if address == _MEMORY:
        return MemoryStore(clock=clock, events=events)
    if scheme in _REDIS:
        return _redis(address, clock, events)
    if scheme.partition("+")[0] in _DATABASES:
        return _database(address, scheme, clock, events)
    raise _unknown(scheme)


def _scheme(address: str) -> str | None:
    found = _SCHEME.match(address)
    return None if found is None else found[1].lower()


def _folder(
    address: Address, clock: Clock, events: EventStream | None, durability: Durability | None
) -> Store:
    if not isinstance(address, str | PathLike):
        raise TypeError(
            f"a store's address must be a str or a path, got {type(address).__name__}; "
            "pass a store that is already open directly"
        )
    if not str(address).strip():
        raise InvalidInput("the address of the store is empty; pass a folder or 'memory:'")
    folder = Path(address).expanduser()
    if folder.exists() and not folder.is_dir():
        raise InvalidInput(
            f"{folder} is a file, not a folder; for a SQLite database use sqlite:///{folder}"
        )
    from .space import SpaceStore

    return SpaceStore(folder, clock=clock, events=events, durability=durability)


def _database(address: str, scheme: str, clock: Clock, events: EventStream | None) -> Store:
    _check_installed("sqlalchemy", _DATABASES[scheme.partition("+")[0]])
    from .sql import SQLStore

    url = scheme + address[len(scheme) :]  # the scheme in lower case
    return SQLStore(url, clock=clock, events=events)


def _redis(address: str, clock: Clock, events: EventStream | None) -> Store:
    _check_installed("redis", "redis")
    from .redis import RedisStore

    return RedisStore(address, prefix=REDIS_PREFIX, clock=clock, events=events)


def _unknown(scheme: str) -> InvalidInput:
    if scheme in ("http", "https"):
        return InvalidInput(f"{scheme}: begins the address of a server, not of a store")
    known = ", ".join((*_DATABASES, *_REDIS))
    return InvalidInput(
        f"unknown store {scheme!r}: an address is 'memory:', a folder, or begins with one of "
        f"{known}, followed by '://'; pass a folder of that name as a Path"
    )


def _check_installed(package: str, extra: str) -> None:
    try:
        import_module(package)
    except ImportError as error:
        raise MissingExtra(package, extra) from error
