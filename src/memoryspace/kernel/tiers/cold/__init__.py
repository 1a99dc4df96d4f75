"""The cold tier: where memories go that the heap has no room for, behind one interface.

``open_cold`` finds or founds the storage of a folder; the engines can be opened by name as well.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ....errors import MissingExtra, StoreError, StoreUnavailable
from ....extras import Lazy, lazily
from .contract import ColdStats, ColdStorage
from .ram import RamColdStorage
from .sqlite import SQLiteColdStorage

if TYPE_CHECKING:
    from .lmdb_engine import LMDBColdStorage

__all__ = [
    "ColdStats",
    "ColdStorage",
    "LMDBColdStorage",
    "RamColdStorage",
    "SQLiteColdStorage",
    "open_cold",
]

LMDB_FILE = "cold.lmdb"
SQLITE_FILE = "cold.sqlite"

_find = lazily(__name__, {"LMDBColdStorage": Lazy("lmdb_engine", "lmdb", "lmdb")})


def __getattr__(name: str) -> object:
    return _find(name)


def open_cold(
    folder: str | os.PathLike[str], *, durable: bool = True, salvage: bool = False
) -> ColdStorage:
    """Open the cold storage of a folder: the one that is there, else a new one.

    A new one is LMDB's if the package is installed, else SQLite's. What an engine wrote is never
    left behind for another: without the package, a folder of LMDB's is an error. With ``salvage``
    a file of LMDB's that cannot be opened is set aside, and what is intact in it goes on in a new
    one; SQLite reads what is intact where it is.
    """
    home = Path(folder).absolute()
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreUnavailable(f"{home}: {error.strerror}; choose a writable folder") from error
    has_lmdb, has_sqlite = (home / LMDB_FILE).exists(), (home / SQLITE_FILE).exists()
    if has_lmdb and has_sqlite:
        raise StoreError(
            f"{home} holds two cold storages, {LMDB_FILE} and {SQLITE_FILE}; "
            f"move the one that is not in use to another folder"
        )
    if has_sqlite or not (has_lmdb or find_spec("lmdb")):
        return SQLiteColdStorage(home / SQLITE_FILE, durable=durable)
    return _lmdb_engine()(home / LMDB_FILE, durable=durable, salvage=salvage)


def _lmdb_engine() -> type[LMDBColdStorage]:
    try:
        from .lmdb_engine import LMDBColdStorage
    except ImportError as error:
        raise MissingExtra("lmdb", "lmdb") from error
    return LMDBColdStorage
