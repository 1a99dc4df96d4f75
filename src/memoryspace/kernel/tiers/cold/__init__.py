"""Cold storage engines: where bodies go that do not fit into the heap.

``open_cold`` opens or creates the storage of a folder. The engines can also be opened directly.
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
    """Open the cold storage of a folder, or create one.

    A new storage uses LMDB if the package is installed, or else SQLite. An existing one is always
    opened with its own engine.

    Args:
        folder: The folder; it is created if need be.
        durable: Whether a write survives a power cut once it has returned.
        salvage: Set a damaged LMDB file aside and continue with its intact values in a new one.
            SQLite reads what is intact without this.

    Raises:
        MissingExtra: The folder has an LMDB file, and the package is not installed.
        StoreError: The folder has two storages.
        CorruptData: The file is damaged and ``salvage`` is not set.
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
