"""Checks of a space's folder that only read: they hold while another process uses it, too."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from ..errors import CorruptData, MissingExtra, StoreError
from ..kernel import FolderInUse, FolderLock
from ..kernel.durable.disk import Disk
from ..kernel.durable.image import VERSION as IMAGE_VERSION
from ..kernel.durable.image import Image, ImageTooNew
from ..kernel.durable.journal import FORMAT_VERSION as JOURNAL_VERSION
from ..kernel.durable.journal import JournalTooNew
from ..kernel.durable.journal.folder import parts_of
from ..kernel.durable.journal.recovery import survey
from ..kernel.tiers.cold import LMDB_FILE, SQLITE_FILE
from ..store import ErasureLedger, SpaceStore, Store
from ..store.erasures import FILE as LEDGER
from .errors import BackupDamaged
from .findings import Finding, few, ok
from .manifest import read_manifest

QUARANTINE = "quarantine"

_LOW = 64 << 20  # bytes of free disk space
_RESTORE = "restore a backup"
_PARTS = ("journal", "checkpoints", "cold", "index", QUARANTINE)


def folder_of(store: Store) -> Path | None:
    """Return the folder that a store opens, if it opens one."""
    opened = store.folder if isinstance(store, SpaceStore) else None
    return None if opened is None else Path(opened)


def examine_folder(folder: Path) -> Iterator[Finding]:
    """Yield what there is to say about a folder and its files."""
    checks: list[Callable[[Path], Iterator[Finding]]] = [
        _permissions, _disk, _journal, _checkpoints, _cold, _index, _ledger, _quarantine,
    ]  # fmt: skip
    for check in checks:
        try:
            yield from check(folder)
        except OSError as error:
            yield Finding(
                "problem",
                check.__name__.strip("_"),
                f"{error.filename or folder} cannot be read: {error.strerror}",
                "check the disk and the permissions",
            )


def owner_of(folder: Path) -> Finding:
    """Return whether a process has the folder open."""
    try:
        with FolderLock(folder):
            return ok("owner", "no process has the folder open")
    except FolderInUse as error:
        who = "another process" if error.owner is None else str(error.owner)
        return Finding(
            "warning",
            "owner",
            f"the folder is in use by {who}: its contents were not examined",
            "close it there, or examine the store in that process",
        )
    except StoreError as error:
        return Finding("problem", "owner", str(error), "make the folder writable")


def _permissions(folder: Path) -> Iterator[Finding]:
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        yield Finding("problem", "permissions", f"{folder} is not writable", "change its owner")
    elif folder.stat().st_mode & stat.S_IWOTH:
        yield Finding(
            "warning", "permissions", f"every user of this machine can write to {folder}",
            f"chmod o-w {folder}",
        )  # fmt: skip
    else:
        yield ok("permissions", "the folder is writable, and by nobody else")


def _disk(folder: Path) -> Iterator[Finding]:
    free, used = shutil.disk_usage(folder).free, _size_of(folder)
    what = f"{_mib(free)} free, the folder takes {_mib(used)}"
    if free < _LOW:
        yield Finding("problem", "disk", what, "free disk space: soon nothing can be written")
    elif free < used:
        yield Finding(
            "warning", "disk", what, "free disk space: a scrub or a backup needs room for a copy"
        )
    else:
        yield ok("disk", what)


def _journal(folder: Path) -> Iterator[Finding]:
    disk, path = Disk(), folder / "journal"
    if not path.is_dir():
        yield ok("journal", "there is none yet")
        return
    try:
        seen = survey(disk, parts_of(disk, path)[0])
    except JournalTooNew as error:
        yield Finding("problem", "journal", str(error), "upgrade memoryspace")
        return
    except CorruptData as error:
        yield Finding("problem", "journal", str(error), _RESTORE)
        return
    if seen.damage:
        lost = "; ".join(map(str, seen.damage))
        yield Finding("problem", "journal", f"it lost {lost}", _RESTORE, "salvage")
        return
    torn = "" if seen.torn is None else "; a write that was cut short is dropped on opening"
    yield ok("journal", f"format {JOURNAL_VERSION}, whole up to change {seen.last_lsn}{torn}")


def _checkpoints(folder: Path) -> Iterator[Finding]:
    images = sorted((folder / "checkpoints").glob("*.image"))
    damaged = []
    for path in images:
        try:
            with Image(path):
                pass
        except ImageTooNew as error:
            yield Finding("problem", "checkpoints", str(error), "upgrade memoryspace")
            return
        except CorruptData as error:
            damaged.append(path)
            level = "problem" if path == images[-1] else "warning"
            yield Finding(level, "checkpoints", str(error), _RESTORE, "set aside")  # type: ignore[arg-type]  # either is a level
    if not damaged:
        yield ok("checkpoints", f"format {IMAGE_VERSION}, {len(images)} intact")


def _cold(folder: Path) -> Iterator[Finding]:
    lmdb, sqlite = folder / "cold" / LMDB_FILE, folder / "cold" / SQLITE_FILE
    if lmdb.exists() and sqlite.exists():
        yield Finding(
            "problem", "cold tier", f"there are two: {lmdb} and {sqlite}",
            "move the one that is not in use to another folder",
        )  # fmt: skip
    elif lmdb.exists():
        yield _lmdb(lmdb)
    elif sqlite.exists():
        yield _sqlite(sqlite)
    else:
        yield ok("cold tier", "there is none yet")


def _lmdb(path: Path) -> Finding:
    try:
        import lmdb  # noqa: F401  # is it installed?

        from ..kernel.tiers.cold.lmdb_form import FORMAT
        from ..kernel.tiers.cold.lmdb_pages import LMDBPages
    except ImportError:
        missing = MissingExtra("lmdb", "lmdb")
        return Finding("problem", "cold tier", f"{path} is an LMDB file", str(missing))
    with open(path, "rb") as file:
        pages = LMDBPages(file.fileno())
        if pages.meta is None:
            return Finding("problem", "cold tier", f"{path} is no LMDB file", _RESTORE)
        missing_page = pages.first_missing() if pages.size < pages.claimed_size else None
    if missing_page is not None:
        what = f"{path} is cut short: page {missing_page}, which is in use, is missing"
        return Finding("problem", "cold tier", what, _RESTORE, "salvage")
    return ok("cold tier", f"LMDB, format {FORMAT}, whole")


def _sqlite(path: Path) -> Finding:
    from ..kernel.tiers.cold.sqlite import FORMAT

    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=1)) as connection:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            (answer,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.OperationalError:
        return ok("cold tier", "SQLite, open in a process, not read")
    except sqlite3.DatabaseError as error:
        return Finding("problem", "cold tier", f"{path}: {error}", _RESTORE)
    if version > FORMAT:
        what = f"{path} has format {version}, this version reads up to {FORMAT}"
        return Finding("problem", "cold tier", what, "upgrade memoryspace")
    if answer != "ok":
        return Finding("problem", "cold tier", f"{path}: {answer}", _RESTORE)
    return ok("cold tier", f"SQLite, format {version}, whole")


def _index(folder: Path) -> Iterator[Finding]:
    from ..retrieval.persistence import load_arrays

    paths = sorted((folder / "index").glob("*/*.json"))
    for path in paths:
        try:
            load_arrays(path.parent, path.stem)
        except (CorruptData, FileNotFoundError) as error:
            yield Finding(
                "warning", "saved index", str(error),
                "nothing is lost: it is built again when the space is opened", "rebuild",
            )  # fmt: skip
            return
    yield ok("saved index", "intact" if paths else "there is none, and none is needed")


def _ledger(folder: Path) -> Iterator[Finding]:
    ledger = ErasureLedger(folder / LEDGER)
    if not ledger.is_begun:
        yield ok("erasures", "none was noted")
        return
    try:
        erasures, backups = ledger.erasures(), ledger.backups()
    except CorruptData as error:
        yield Finding("problem", "erasures", str(error), f"copy it from beside a backup: {LEDGER}")
        return
    yield ok("erasures", f"{len(erasures)} noted")
    if not backups:
        yield Finding("warning", "backups", "none was made of this folder", "back it up")
    for backup in backups:
        yield _backup(ledger, backup)


def _backup(ledger: ErasureLedger, backup: Path) -> Finding:
    try:
        manifest, behind = read_manifest(backup), ledger.behind(backup)
    except BackupDamaged as error:
        return Finding("problem", "backups", str(error), "back up again to another folder")
    except (CorruptData, ValueError, StoreError) as error:
        return Finding("warning", "backups", str(error), "connect the disk, or back up elsewhere")
    if behind:
        what = f"{backup} was not told of {behind} notes of erasures"
        return Finding("warning", "backups", what, "back up again", "catch up")
    return ok("backups", f"{backup} has {len(manifest.lines)} lines and knows of all erasures")


def _quarantine(folder: Path) -> Iterator[Finding]:
    names = sorted(each.name for each in (folder / QUARANTINE).glob("*"))
    if names:
        yield Finding(
            "warning", "quarantine", f"{len(names)} things are set aside: {few(names)}",
            f"they hold what could not be read: remove {folder / QUARANTINE} when you are done",
        )  # fmt: skip


def _size_of(folder: Path) -> int:
    paths = (folder / part for part in _PARTS)
    return sum(
        each.lstat().st_size for path in paths for each in path.glob("**/*") if each.is_file()
    )


def _mib(size: int) -> str:
    return f"{size / (1 << 20):,.0f} MiB" if size >= 1 << 20 else f"{size / 1024:,.0f} KiB"
