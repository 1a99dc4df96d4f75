"""SQLAlchemy engines from the usual forms of a database address.

``postgres://``, ``postgresql://``, ``mysql://``, ``mariadb://`` and ``sqlite://`` select the driver
that the package's extra installs. An address that names a driver keeps it.

The query of an address may hold our own options beside the driver's::

    postgresql://host/app?partitions=16&pool_size=4&max_overflow=0&pgbouncer=true&replica=…
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError, InvalidRequestError, NoSuchModuleError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from ...errors import InvalidInput, MissingExtra

# scheme → (dialect, driver, the extra that installs the driver)
_DRIVERS = {
    "sqlite": ("sqlite", "aiosqlite", "sql"),
    "postgres": ("postgresql", "asyncpg", "postgres"),
    "postgresql": ("postgresql", "asyncpg", "postgres"),
    "mysql": ("mysql", "asyncmy", "mysql"),
    "mariadb": ("mariadb", "asyncmy", "mysql"),
}
_BEGINNINGS = ", ".join(f"{name}://" for name in _DRIVERS)


_NUMBERS = ("partitions", "pool_size", "max_overflow")
_OWN = (*_NUMBERS, "pgbouncer", "replica")
_YES_OR_NO = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}

# A pooler that gives every transaction another connection knows none of the statements that were
# prepared on the last one. So each statement is prepared without a name, and used at once.
_UNPREPARED: dict[str, dict[str, Any]] = {
    "asyncpg": {
        "statement_cache_size": 0,
        "prepared_statement_cache_size": 0,
        "prepared_statement_name_func": lambda: "",
    },
    "psycopg": {"prepare_threshold": None},
}


class AddressOptions(Struct, frozen=True):
    """Our own options in the query of an address."""

    partitions: int | None = None
    pool_size: int | None = None
    max_overflow: int | None = None
    pgbouncer: bool = False
    replica: str | None = None


def options_in(address: str) -> AddressOptions:
    """Return our own options in an address; raise ``InvalidInput`` if one is unusable."""
    return _options(_parsed(address))


def open_engine(address: str) -> AsyncEngine:
    """Create an engine for an address without connecting; raise if its driver is unusable."""
    parsed = _parsed(address)
    options = _options(parsed)
    url = _with_driver(parsed.difference_update_query(_OWN))
    family, _, driver = url.drivername.partition("+")
    _, own_driver, extra = _DRIVERS[family]
    try:
        return create_async_engine(url, **_engine_options(options, driver))
    except ImportError as error:
        if driver == own_driver:
            raise MissingExtra(driver, extra) from error
        raise InvalidInput(
            f"the driver {driver!r} of this address is not installed: install it, or use "
            f"{family}:// and run: pip install 'memoryspace[{extra}]'"
        ) from error
    except (InvalidRequestError, NoSuchModuleError) as error:
        raise InvalidInput(
            f"the driver {driver!r} of this address cannot be used with asyncio; "
            f"use {family}:// for one that can"
        ) from error


def _options(url: URL) -> AddressOptions:
    given: dict[str, Any] = {name: url.query[name] for name in _OWN if name in url.query}
    for name, value in given.items():
        if not isinstance(value, str):
            raise InvalidInput(f"the address gives {name} more than once")
        if name in _NUMBERS:
            given[name] = _number(name, value)
    if "pgbouncer" in given:
        given["pgbouncer"] = _YES_OR_NO.get(given["pgbouncer"].lower())
        if given["pgbouncer"] is None:
            raise InvalidInput("pgbouncer in an address must be true or false")
    return AddressOptions(**given)


def _number(name: str, value: str) -> int:
    if not (value.isascii() and value.isdecimal() and len(value) < 6):
        raise InvalidInput(f"{name} in an address must be a whole number, got {value!r}")
    return int(value)


def _engine_options(options: AddressOptions, driver: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if options.pool_size is not None:
        if options.pool_size == 0:
            raise InvalidInput("pool_size in an address must be 1 or more")  # 0 is no limit there
        found["pool_size"] = options.pool_size
    if options.max_overflow is not None:
        found["max_overflow"] = options.max_overflow
    if options.pgbouncer:
        if driver not in _UNPREPARED:
            raise InvalidInput(f"pgbouncer=true is for PostgreSQL's drivers, got {driver}")
        found["connect_args"] = dict(_UNPREPARED[driver])
    return found


def _parsed(address: str) -> URL:
    """Parse an address. It may contain a password, so errors do not show it."""
    try:
        url = make_url(address)
    except (ArgumentError, ValueError):
        raise InvalidInput(
            "this is not a database address; the form is "
            "postgresql://user:password@host/name or sqlite:///file.db"
        ) from None
    if url.get_backend_name() not in _DRIVERS:
        raise InvalidInput(
            f"a database address begins with one of {_BEGINNINGS}; "
            f"got {url.drivername.partition('+')[0]}://"
        )
    return url


def _with_driver(url: URL) -> URL:
    family, _, driver = url.drivername.partition("+")
    dialect, own_driver, _ = _DRIVERS[family]
    url = url.set(drivername=f"{dialect}+{driver or own_driver}")
    if url.drivername == "postgresql+asyncpg" and "sslmode" in url.query:  # libpq's name for it
        others = {name: value for name, value in url.query.items() if name != "sslmode"}
        url = url.set(query={**others, "ssl": url.query["sslmode"]})
    return url
