"""``open_store``: the store at an address, wherever that is."""

from __future__ import annotations

import re
import time
from importlib import import_module
from os import PathLike
from pathlib import Path

from ..errors import InvalidInput, MissingExtra
from ..events import EventStream
from .contract import Clock, Store
from .memory import MemoryStore

REDIS_PREFIX = "memoryspace:service:"  # of all keys of long-term memory in a Redis server

_MEMORY = "memory:"
_REDIS = ("redis", "rediss", "unix")
# Kinds of databases, with the extra that brings what is needed.
_DATABASES = {
    "sqlite": "sql",
    "postgresql": "postgres",
    "postgres": "postgres",
    "mysql": "mysql",
    "mariadb": "mysql",
}
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")  # two letters at least: C:\ is a folder

Address = str | PathLike[str]


def open_store(
    address: Address, *, clock: Clock = time.time, events: EventStream | None = None
) -> Store:
    """Return a store at an address; who opened it closes it.

    ``memory:`` is this process's memory. ``sqlite:///…``, ``postgresql://…`` (or ``postgres://…``),
    ``mysql://…`` and ``mariadb://…`` are databases, ``redis://…``, ``rediss://…`` and ``unix://…``
    Redis servers. Anything else is a folder, which one process at a time owns. Nothing is connected
    or created before it is used.
    """
    if not isinstance(address, str):
        return _folder(address, clock, events)
    scheme = _scheme(address)
    if scheme is None:
        return _folder(address, clock, events)
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


def _folder(address: Address, clock: Clock, events: EventStream | None) -> Store:
    if not isinstance(address, str | PathLike):
        raise TypeError(
            f"a store's address must be a str or a path, got {type(address).__name__}; "
            "a store that is open is given as it is"
        )
    if not str(address).strip():
        raise InvalidInput("the address of a store is empty; name a folder, or write 'memory:'")
    folder = Path(address).expanduser()
    if folder.exists() and not folder.is_dir():
        raise InvalidInput(
            f"{folder} is a file, not a folder; for a SQLite database write sqlite:///{folder}"
        )
    from .space import SpaceStore

    return SpaceStore(folder, clock=clock, events=events)


def _database(address: str, scheme: str, clock: Clock, events: EventStream | None) -> Store:
    _check_installed("sqlalchemy", _DATABASES[scheme.partition("+")[0]])
    from .sql import SQLStore

    url = scheme + address[len(scheme) :]  # whichever letters it was written in
    return SQLStore(url, clock=clock, events=events)


def _redis(address: str, clock: Clock, events: EventStream | None) -> Store:
    _check_installed("redis", "redis")
    from .redis import RedisStore

    return RedisStore(address, prefix=REDIS_PREFIX, clock=clock, events=events)


def _unknown(scheme: str) -> InvalidInput:
    if scheme in ("http", "https"):
        return InvalidInput(f"an address that begins with {scheme}: is a server's, not a store's")
    known = ", ".join((*_DATABASES, *_REDIS))
    return InvalidInput(
        f"no store is known by {scheme!r}: an address is 'memory:', a folder, or begins with one "
        f"of {known}, and '://'; a folder of such a name is given as a Path"
    )


def _check_installed(package: str, extra: str) -> None:
    try:
        import_module(package)
    except ImportError as error:
        raise MissingExtra(package, extra) from error
