"""Record backends by name, and how to open each.

Servers are configured in the environment: ``MEMORYSPACE_BENCH_POSTGRES``, ``…_MARIADB``,
``…_REDIS``. Addresses hold passwords, so they are not options: options are written into the
results.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ...errors import MissingExtra
from ...kernel import Durability
from ...store import MemoryStore, Store
from ..harness.experiment import CannotRun

VARIABLE = "MEMORYSPACE_BENCH_"


@dataclass(frozen=True)
class Backend:
    """How to open a backend at an address or in a folder; ``shared``: by several processes."""

    open: Callable[[str], Store]
    server: bool = False
    shared: bool = False


def _space(folder: str, sync: str) -> Store:
    from ...store import SpaceStore

    return SpaceStore(Path(folder, "space"), durability=Durability(sync=sync))


def _sql(url: str) -> Store:
    from ...store import SQLStore

    return SQLStore(url)


def _redis(url: str) -> Store:
    from ...store import RedisStore

    return RedisStore(url)


STORE_BACKENDS: Mapping[str, Backend] = {
    "memory": Backend(lambda folder: MemoryStore()),
    "space": Backend(lambda folder: _space(folder, "always")),
    "space-os": Backend(lambda folder: _space(folder, "os")),
    "sqlite": Backend(
        lambda folder: _sql(f"sqlite+aiosqlite:///{Path(folder, 'records.db')}"), shared=True
    ),
    "postgres": Backend(_sql, server=True, shared=True),
    "mariadb": Backend(_sql, server=True, shared=True),
    "redis": Backend(_redis, server=True, shared=True),
}


def place_of(name: str, folder: str) -> str:
    """Return a backend's location: the folder, or the address of its server."""
    if not STORE_BACKENDS[name].server:
        return folder
    variable = VARIABLE + name.upper()
    address = os.environ.get(variable)
    if not address:
        raise CannotRun(f"{name}: set {variable} to the address of a server")
    return address


def open_backend(name: str, place: str) -> Store:
    """Open a backend; the caller closes it."""
    with skip_if_missing(name):
        return STORE_BACKENDS[name].open(place)


@contextmanager
def skip_if_missing(name: str) -> Iterator[None]:
    """Turn a missing package into ``CannotRun``."""
    try:
        yield
    except (MissingExtra, ImportError) as error:
        raise CannotRun(f"{name}: {error}") from error
