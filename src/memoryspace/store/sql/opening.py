"""SQLAlchemy engines from the usual forms of a database address.

``postgres://``, ``postgresql://``, ``mysql://``, ``mariadb://`` and ``sqlite://`` select the driver
that the package's extra installs. An address that names a driver keeps it.
"""

from __future__ import annotations

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


def open_engine(address: str) -> AsyncEngine:
    """Create an engine for an address without connecting; raise if its driver is unusable."""
    url = _with_driver(_parsed(address))
    family, _, driver = url.drivername.partition("+")
    _, own_driver, extra = _DRIVERS[family]
    try:
        return create_async_engine(url)
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
